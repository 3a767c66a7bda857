# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# Hand-written.  Settings come from build/config.mk, which configure writes
# and which is made by itself when it is missing.
#
#	make		build the programs into build/
#	make demo	the whole thing once, live, on this machine
#	make check	both builds, all tests, one closing line
#	make check-slow	what takes an hour: 2 000 cuts, sieges, large trees,
#			valgrind, 100 000 sessions
#	make catalogue	the messages between our processes, expanded
#	make man-catalogue	the same into man/cloop-internals.7
#	make lint	gcc -fanalyzer, clang-tidy, cppcheck over all sources
#	make bench	us beside our peers: [ROW="idle parse"] [ROUNDS=5]
#	make count	the product's lines by folder, and lengths of functions
#	make install	DESTDIR= and prefix= are honoured
#
# There are seven trees of objects: build/ (gcc, optimised, hardened),
# build/asan/ (clang, ASan + UBSan), build/libfuzzer/ (make fuzz),
# build/hooks/ (crash points, for the torture tests), build/lint/,
# build/coverage/ (make fuzz-coverage) and build/valgrind/ (no allow-lists of
# system calls: regress/valgrind.sh).
# B=DIR puts them elsewhere; V=1 shows the commands.

B = build
.DEFAULT_GOAL = all
.DELETE_ON_ERROR:
.SUFFIXES:

# ------------------------------------------------------------ Debian packages

DEPS_BUILD = gcc libc6-dev make autoconf pkg-config libevent-dev libssl-dev \
	libsqlite3-dev libjson-c-dev libseccomp-dev libcap-ng-dev libbsd-dev \
	libmd-dev zlib1g-dev
DEPS_RUN = openssl iproute2 git
DEPS_TEST = nftables clang libclang-rt-14-dev llvm binutils mandoc \
	python3 python3-websockets procps util-linux golang-go \
	golang-nhooyr-websocket-dev libwslay-dev signify-openbsd \
	systemd-container
# Of the slow tier and make lint.
DEPS_LINT = clang-tidy cppcheck valgrind
# Peers of the bench; npm's ws comes beside them, into build/bench.
DEPS_BENCH = libwebsockets-test-server nginx-light libnginx-mod-nchan \
	openssh-client openssh-server bubblewrap runc sqlite3 linux-perf
# Other packages of node than Debian's bring npm along, and exclude Debian's.
DEPS_NODE = $(if $(shell command -v npm),,nodejs npm)
BENCH_NPM = ws@8

# -------------------------------------------------------------------- programs
# A folder of sources is one privilege and becomes one archive; a program is
# its folder, the folders below it and its libraries.  The link line is the
# proof of who can do what: only the unprivileged network programs see TLS and
# JSON, and they never see SQLite.  regress/include-map.sh holds the same table
# against the includes, regress/link-map.sh against the built programs.

PROGS = cloopd cloopd-net cloopd-key cloopd-ctl cloopd-fence cloop-agentd \
	agentd-fetch cloop-shim cloop-shimd cloop-git cloop-seed cloop-keygen \
	cloop-enroll cloopctl

COMMON = common/base common/msg common/model common/json common/output

# USES_folder: what a program there, or a test of it, may link besides.
USES_common/base = $(COMMON)
USES_common/msg = $(COMMON)
USES_common/model = $(COMMON)
USES_common/json = $(COMMON)
USES_common/output = $(COMMON)
USES_common/client = $(COMMON)
USES_store/db = $(COMMON)
USES_store/keygen = store/db $(COMMON)
USES_store/enroll = store/db common/client $(COMMON)
USES_sandbox/self = $(COMMON)
USES_sandbox/box = sandbox/self $(COMMON)
USES_sandbox/rules = $(COMMON)
USES_sandbox/shim = sandbox/box sandbox/self $(COMMON)
USES_sandbox/shimd = sandbox/box sandbox/self $(COMMON)
USES_net/codec = $(COMMON)
USES_net/conn = net/codec $(COMMON)
USES_net/hub = net/conn net/codec sandbox/self $(COMMON)
USES_priv/monitor = store/db sandbox/box sandbox/rules sandbox/self $(COMMON)
USES_priv/key = sandbox/self $(COMMON)
USES_priv/ctl = sandbox/self $(COMMON)
USES_priv/fence = sandbox/rules sandbox/self $(COMMON)
USES_priv/cloopctl = common/client sandbox/self $(COMMON)
USES_agent/monitor = sandbox/box sandbox/self $(COMMON)
USES_agent/fetch = net/conn net/codec sandbox/self $(COMMON)
USES_agent/job = net/codec sandbox/self $(COMMON)

# MAIN_program: the file of its main(); its folder is the program's.
MAIN_cloopd = priv/monitor/cloopd
MAIN_cloopd-net = net/hub/cloopd_net
MAIN_cloopd-key = priv/key/cloopd_key
MAIN_cloopd-ctl = priv/ctl/cloopd_ctl
MAIN_cloopd-fence = priv/fence/cloopd_fence
MAIN_cloop-agentd = agent/monitor/agentd
MAIN_agentd-fetch = agent/fetch/agentd_fetch
MAIN_cloop-shim = sandbox/shim/cloop_shim
MAIN_cloop-shimd = sandbox/shimd/cloop_shimd
MAIN_cloop-git = agent/job/cloop_git
MAIN_cloop-seed = agent/job/cloop_seed
MAIN_cloop-keygen = store/keygen/cloop_keygen
MAIN_cloop-enroll = store/enroll/cloop_enroll
MAIN_cloopctl = priv/cloopctl/cloopctl

DAEMON_LIBS = $(LIB_EVENT) $(LIB_SECCOMP) $(LIB_CAPNG) $(LIB_BSD)
LIBS_cloopd = $(DAEMON_LIBS) $(LIB_SQLITE) $(LIB_CRYPTO)
LIBS_cloopd-net = $(DAEMON_LIBS) $(LIB_SSL) $(LIB_CRYPTO) $(LIB_JSONC)
LIBS_cloopd-key = $(DAEMON_LIBS) $(LIB_CRYPTO)
LIBS_cloopd-ctl = $(DAEMON_LIBS)
LIBS_cloopd-fence = $(DAEMON_LIBS)
LIBS_cloop-agentd = $(DAEMON_LIBS) $(LIB_CRYPTO)
LIBS_agentd-fetch = $(DAEMON_LIBS) $(LIB_SSL) $(LIB_CRYPTO) $(LIB_JSONC)
LIBS_cloop-shim = $(LIB_CAPNG) $(LIB_BSD)
LIBS_cloop-shimd = $(LIB_SECCOMP) $(LIB_CAPNG) $(LIB_BSD)
LIBS_cloop-git = $(LIB_CRYPTO) $(LIB_SECCOMP) $(LIB_BSD)
LIBS_cloop-seed = $(LIB_JSONC) $(LIB_ZLIB) $(LIB_BSD)
LIBS_cloop-keygen = $(LIB_SQLITE) $(LIB_CRYPTO) $(LIB_BSD)
LIBS_cloop-enroll = $(LIB_SQLITE) $(LIB_CRYPTO) $(LIB_BSD)
LIBS_cloopctl = $(LIB_SECCOMP) $(LIB_MD) $(LIB_BSD)

# Where each program goes.
SBIN_PROGS = cloopd cloop-agentd cloop-keygen cloop-enroll
BIN_PROGS = cloopctl
LIBEXEC_PROGS = cloopd-net cloopd-key cloopd-ctl cloopd-fence agentd-fetch \
	cloop-shim cloop-shimd cloop-git cloop-seed

# Fuzz targets whose decoder is not in common/, and what the bench's programs
# are made of: regress/bench/NAME.mk.
-include regress/objects.mk
-include $(wildcard regress/bench/*.mk)

# ------------------------------------------------------------------- settings
# These goals must work before configure can (demo and check install the
# packages first and then call make again).

SETUP_GOALS = deps deps-build deps-bench deps-lint users demo check count \
	clean distclean help
ifneq ($(filter-out $(SETUP_GOALS),$(or $(MAKECMDGOALS),all)),)
include build/config.mk
endif

build/config.mk: configure
	@echo '  CONFIGURE'
	@./configure -q

configure: configure.ac
	@echo '  AUTOCONF'
	@command -v autoconf >/dev/null || \
	    { echo 'autoconf is missing: run "make deps"' >&2; exit 1; }
	@autoconf

CLOOP_LIBEXECDIR = $(libexecdir)/cloop
PATH_DEFS = -DSYSCONFDIR='"$(sysconfdir)"' \
	-DLOCALSTATEDIR='"$(localstatedir)"' -DRUNDIR='"$(runstatedir)"' \
	-DLIBEXECDIR='"$(CLOOP_LIBEXECDIR)"' -DCLOOP_VERSION='"$(VERSION)"'
BASE_CFLAGS = -std=c17 -D_GNU_SOURCE -I. $(PATH_DEFS) \
	$(WARN_CFLAGS) $(LIB_CFLAGS)

CC_gcc = $(CC)
CFLAGS_gcc = $(OPT_CFLAGS) $(HARDEN_CFLAGS)
LDFLAGS_gcc = $(HARDEN_LDFLAGS)

SANITIZE = -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=all
CC_asan = $(CLANG)
CFLAGS_asan = $(SANITIZE) -DCLOOP_SANITIZE
LDFLAGS_asan = $(SANITIZE)

# Crash points and injected faults, for regress/torture only.
CC_hooks = $(CC)
CFLAGS_hooks = $(OPT_CFLAGS) -DCLOOP_TEST_HOOKS
LDFLAGS_hooks =
EXTRA_hooks = regress/hooks/crash.o

# gcc's analyzer; what it finds is an error (configure's -Werror).
CC_lint = $(CC)
CFLAGS_lint = -O1 -fanalyzer $(LINT_OFF)
# malloc-leak: it does not see that a table, a queue or libevent keeps what was
# put into it, nor that xmem ends the process; LeakSanitizer sees what leaks.
LINT_OFF = -Wno-analyzer-malloc-leak
# Of gcc 12, where it joins the error of one call with the success of another:
# a file that was loaded has text; a begin was found; a grown message is there;
# a request has a kind.
$(B)/lint/obj/common/base/conf.o: LINT_OFF += -Wno-analyzer-null-argument \
	-Wno-analyzer-use-of-uninitialized-value
$(B)/lint/obj/common/output/redact.o: LINT_OFF += \
	-Wno-analyzer-use-of-uninitialized-value
$(B)/lint/obj/net/codec/ws.o: LINT_OFF += -Wno-analyzer-null-argument
$(B)/lint/obj/net/hub/hub_request.o: LINT_OFF += -Wno-analyzer-null-dereference

CC_coverage = $(CLANG)
CFLAGS_coverage = -g -O0 -fprofile-instr-generate -fcoverage-mapping
LDFLAGS_coverage = $(CFLAGS_coverage)

CC_valgrind = $(CC)
CFLAGS_valgrind = -g -O1 -DCLOOP_VALGRIND
LDFLAGS_valgrind =

CC_fuzz = $(CLANG)
CFLAGS_fuzz = $(SANITIZE) -DCLOOP_SANITIZE -fsanitize=fuzzer-no-link
LDFLAGS_fuzz = $(SANITIZE)

# ---------------------------------------------------------------------- rules

ifeq ($(V),1)
Q =
say = @:
else
Q = @
say = @printf '  %-8s%s\n'
endif

FOLDERS = $(patsubst USES_%,%,$(filter USES_%,$(.VARIABLES)))
MAINS = $(foreach p,$(PROGS),$(MAIN_$(p)).o)
UNIT_SRCS = $(wildcard regress/unit/*/*/test_*.c)
UNIT_TESTS = $(basename $(notdir $(UNIT_SRCS)))
FUZZERS = $(patsubst regress/fuzz/%.c,%,$(wildcard regress/fuzz/fuzz_*.c))
ATTACKS = $(patsubst regress/attacks/%.c,%,$(wildcard regress/attacks/*.c))
BENCHES = $(patsubst regress/bench/%.c,%,$(wildcard regress/bench/*.c))
# Of those that run no daemon; what is not needed is not linked.
LIBS_TEST = -Wl,--as-needed $(DAEMON_LIBS) $(LIB_SQLITE) $(LIB_SSL) \
	$(LIB_CRYPTO) $(LIB_JSONC) $(LIB_ZLIB) $(LIB_MD)

# IN(folder): it and what it uses.
IN = $(sort $(1) $(USES_$(1)))
# FOLDER(file): where it is.
FOLDER = $(patsubst %/,%,$(dir $(1)))

# TREE(directory, flavour): compile and link there.
define TREE
$(1)/obj/%.o: %.c $(1)/obj/flags
	@mkdir -p $$(@D)
	$(say) 'CC' '$$@'
	$(Q)$$(CC_$(2)) $$(BASE_CFLAGS) $$(CFLAGS_$(2)) $$(CFLAGS) -MMD -MP \
	    -c -o $$@ $$<

# Everything is rebuilt when a flag or an installed path changes.
$(1)/obj/flags: FORCE
	@mkdir -p $$(@D)
	@printf '%s\n' '$$(subst ','\'',$$(CC_$(2)) $$(BASE_CFLAGS) \
	    $$(CFLAGS_$(2)) $$(CFLAGS))' | cmp -s - $$@ || \
	    printf '%s\n' '$$(subst ','\'',$$(CC_$(2)) $$(BASE_CFLAGS) \
	    $$(CFLAGS_$(2)) $$(CFLAGS))' > $$@

$(foreach f,$(FOLDERS),
$(1)/obj/$(f).a: $(addprefix $(1)/obj/,$(filter-out $(MAINS),\
    $(patsubst %.c,%.o,$(wildcard $(f)/*.c))))
	@mkdir -p $$(@D) && rm -f $$@ && ar rcsD $$@ $$^
)

$(1)/all: $$(addprefix $(1)/,$$(PROGS))
$(1)/tests: $$(addprefix $(1)/unit/,$$(UNIT_TESTS)) \
	$$(addprefix $(1)/replay/,$$(FUZZERS)) \
	$$(addprefix $(1)/attacks/,$$(ATTACKS))
.PHONY: $(1)/all $(1)/tests
-include $$(shell find $(1)/obj -name '*.d' 2>/dev/null)
endef

# LINK(file, tree, flavour, objects, folders, libraries)
define LINK
$(1): $(addprefix $(2)/obj/,$(4) $(addsuffix .a,$(5)))
	@mkdir -p $$(@D)
	$(say) 'LD' '$$@'
	$(Q)$$(CC_$(3)) $$(CFLAGS_$(3)) $$(LDFLAGS_$(3)) $$(LDFLAGS) -o $$@ \
	    $(addprefix $(2)/obj/,$(4)) -Wl,--start-group \
	    $(addprefix $(2)/obj/,$(addsuffix .a,$(5))) -Wl,--end-group $(6)
endef

# PROGRAMS(tree, flavour, more objects), TESTS(tree, flavour),
# FUZZ(directory, tree, flavour, more libraries)
PROGRAMS = $(foreach p,$(PROGS),$(eval $(call LINK,$(1)/$(p),$(1),$(2),\
    $(MAIN_$(p)).o $(3),$(call IN,$(call FOLDER,$(MAIN_$(p)))),$(LIBS_$(p)))))
TESTS = $(foreach s,$(UNIT_SRCS),$(eval $(call LINK,\
    $(1)/unit/$(basename $(notdir $(s))),$(1),$(2),$(s:.c=.o),\
    $(call IN,$(patsubst regress/unit/%,%,$(call FOLDER,$(s)))),$(LIBS_TEST)))) \
    $(foreach a,$(ATTACKS),$(eval $(call LINK,$(1)/attacks/$(a),$(1),$(2),\
    regress/attacks/$(a).o,$(COMMON),$(LIBS_TEST))))
FUZZ = $(foreach f,$(FUZZERS),$(eval $(call LINK,$(1)/$(f),$(2),$(3),\
    regress/fuzz/$(f).o regress/fuzz/main.o,\
    $(call IN,$(or $(IN_$(f)),common/base)),$(4) $(LIBS_$(f)) $(LIBS_TEST))))

$(eval $(call TREE,$(B),gcc))
$(eval $(call TREE,$(B)/asan,asan))
$(eval $(call TREE,$(B)/libfuzzer,fuzz))
$(eval $(call TREE,$(B)/hooks,hooks))
$(eval $(call TREE,$(B)/lint,lint))
$(eval $(call TREE,$(B)/coverage,coverage))
$(eval $(call TREE,$(B)/valgrind,valgrind))
$(call PROGRAMS,$(B),gcc)
$(call TESTS,$(B),gcc)
$(call FUZZ,$(B)/replay,$(B),gcc)
$(call PROGRAMS,$(B)/asan,asan)
$(call TESTS,$(B)/asan,asan)
$(call FUZZ,$(B)/asan/replay,$(B)/asan,asan)
$(call PROGRAMS,$(B)/hooks,hooks,$(EXTRA_hooks))
$(call PROGRAMS,$(B)/valgrind,valgrind)
$(call FUZZ,$(B)/coverage,$(B)/coverage,coverage)
$(call FUZZ,$(B)/libfuzzer,$(B)/libfuzzer,fuzz,-fsanitize=fuzzer)
$(foreach p,$(BENCHES),$(eval $(call LINK,$(B)/bench/$(p),$(B),gcc,\
    regress/bench/$(p).o $(OBJS_bench_$(p)),\
    $(if $(IN_bench_$(p)),$(call IN,$(IN_bench_$(p)))),$(LIBS_TEST))))

$(B)/hooks/%.so: regress/hooks/%.c $(B)/hooks/obj/flags
	$(say) 'LD' '$@'
	$(Q)$(CC) $(BASE_CFLAGS) -g -O1 -fPIC -shared -o $@ $< -ldl
$(B)/hooks/all: $(B)/hooks/faultio.so $(B)/hooks/wallclock.so

# --------------------------------------------------------------------- targets

all: $(B)/all
asan: $(B)/asan/all

help:
	@sed -n '/^#	make/s/^#	/  /p' Makefile

# Install only what is missing; ask apt for nothing otherwise.
deps: PACKAGES = $(DEPS_BUILD) $(DEPS_RUN) $(DEPS_TEST)
deps-build: PACKAGES = $(DEPS_BUILD) $(DEPS_RUN)
deps-bench: PACKAGES = $(DEPS_BENCH) $(DEPS_NODE)
deps-lint: PACKAGES = $(DEPS_LINT)
deps deps-build deps-bench deps-lint:
	@missing=; for p in $(PACKAGES); do \
	    dpkg-query -W -f='$${db:Status-Abbrev}' $$p 2>/dev/null | \
	    grep -q '^.i' || missing="$$missing $$p"; \
	done; \
	[ -z "$$missing" ] && exit 0; \
	if [ "$$(id -u)" != 0 ]; then \
	    echo "Missing packages; as root: apt-get install$$missing" >&2; \
	    exit 1; \
	fi; \
	echo "  APT    $$missing"; \
	: 'RUNLEVEL=1: a package starts nothing here'; \
	export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1; \
	apt="apt-get -qq -o DPkg::Lock::Timeout=300"; \
	$$apt update && $$apt install -y \
	    --no-install-recommends $$missing >/dev/null
deps-bench: $(B)/bench/node_modules

# A peer that cannot be had is missing from the table, with a note.
$(B)/bench/node_modules:
	@mkdir -p $(@D)
	@echo '  NPM     $(BENCH_NPM)'
	@cd $(@D) && npm install --silent --no-audit --no-fund --no-save \
	    --ignore-scripts --prefix . $(BENCH_NPM)

# ----------------------------------------------------------------------- tests
# LTESTS="text..." picks tests by name.

PICK = $(foreach t,$(LTESTS),-o $(t))
RUN = python3 regress/run.py $(PICK)

# Both trees are built first; the users must exist before daemons start.
check:
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory -j"$$(nproc)" check-build
	@$(MAKE) --no-print-directory users
	@$(RUN) -b $(B) -b $(B)/asan

check-build: $(B)/all $(B)/tests $(B)/asan/all $(B)/asan/tests $(B)/hooks/all \
	$(B)/catalogue

# With LTESTS only those tests are built.
PICKED_TESTS = $(if $(LTESTS),$(foreach t,$(LTESTS),\
	$(addprefix unit/,$(filter test_$(t)%,$(UNIT_TESTS))) \
	$(addprefix replay/,$(filter fuzz_$(t)%,$(FUZZERS)))),tests)

unit: $(addprefix $(B)/,$(PICKED_TESTS)) $(addprefix $(B)/asan/,$(PICKED_TESTS))
	@$(RUN) -b $(B) -b $(B)/asan unit fuzz

# The slow tier: 2 000 cuts (regress/torture), 10 000 connections
# (regress/abuse), every cut of a return, large trees, memcheck, 100 000
# sessions.  The analyzers are make lint.
check-slow: deps-lint check-build users $(B)/valgrind/all \
	$(addprefix $(B)/bench/,$(BENCHES))
	@CLOOP_CUTS=2000 ABUSE=many CLOOP_SLOW=1 $(RUN) -b $(B) \
	    -o "torture abuse git- valgrind sessions" regress

regress: check-build
	@$(RUN) -b $(B) -b $(B)/asan regress

peer: $(B)/all
	@$(RUN) -b $(B) peer

# make lint: all product sources; regress/README.regress.  Only what changed
# is looked at again.
LINT_DIRS = common store priv net agent sandbox
LINT_SRCS = $(wildcard $(addsuffix /*/*.c,$(LINT_DIRS)))
LINT_OBJS = $(LINT_SRCS:%.c=$(B)/lint/obj/%.o)
LINT_TIDY = $(LINT_SRCS:%.c=$(B)/lint/tidy/%.ok)

lint: $(LINT_OBJS) $(LINT_TIDY) $(B)/lint/cppcheck.ok
	@echo "  LINT    $(words $(LINT_SRCS)) files are clean"

# The objects are made first: their .d files say what a stamp depends on.
$(B)/lint/tidy/%.ok: %.c .clang-tidy $(B)/lint/obj/%.o
	@mkdir -p $(@D)
	$(say) 'TIDY' '$<'
	$(Q)clang-tidy --quiet $< -- $(BASE_CFLAGS) >$@.out 2>$@.err || \
	    { cat $@.out; exit 1; }
	@touch $@

# cppcheck's own analysis of the whole; its directory keeps what is known.
$(B)/lint/cppcheck.ok: $(LINT_SRCS) regress/lint/cppcheck.txt \
	$(wildcard $(addsuffix /*/*.h,$(LINT_DIRS)))
	@mkdir -p $(@D)/cppcheck
	$(say) 'CPPCHECK ' '$(LINT_DIRS)'
	$(Q)cppcheck -q --enable=warning,portability,performance \
	    --inline-suppr --std=c11 --template=gcc --error-exitcode=1 \
	    --suppressions-list=regress/lint/cppcheck.txt \
	    --library=posix --library=gnu --library=bsd \
	    --include=/usr/include/bsd/sys/queue.h \
	    --include=/usr/include/bsd/sys/tree.h \
	    --cppcheck-build-dir=$(@D)/cppcheck \
	    -I. -D_GNU_SOURCE $(PATH_DEFS) $(LINT_DIRS)
	@touch $@

# The product is what stands outside of regress.
count:
	@find * -path regress -prune -o -path build -prune -o \
	    \( -name '*.[ch]' -o -name '*.def' \) -print | \
	    xargs python3 regress/count.py

# make fuzz SECONDS=n [LTESTS=name]: libFuzzer on each decoder in turn.  With
# CPU=n instead: until each has had n seconds of processor time in all.
SECONDS = 30
PICKED_FUZZERS = $(if $(LTESTS),$(addprefix fuzz_,$(LTESTS)),$(FUZZERS))
fuzz: $(addprefix $(B)/libfuzzer/,$(PICKED_FUZZERS))
	@[ -z "$(CPU)" ] || exec python3 regress/fuzz/soak.py -c $(CPU) \
	    -d $(B)/soak $(addprefix $(B)/libfuzzer/,$(PICKED_FUZZERS))
	@[ -n "$(CPU)" ] || for f in $(PICKED_FUZZERS); do \
	    n=$${f#fuzz_}; mkdir -p $(B)/corpus/$$n regress/corpus/$$n; \
	    printf '  FUZZ    %s (%s s)\n' $$n $(SECONDS); \
	    $(B)/libfuzzer/$$f -max_total_time=$(SECONDS) -timeout=10 \
		-rss_limit_mb=2048 -artifact_prefix=$(B)/corpus/crash-$$n- \
		$(B)/corpus/$$n regress/corpus/$$n >$(B)/corpus/$$n.log 2>&1 || \
		{ tail -n 40 $(B)/corpus/$$n.log; exit 1; }; \
	    sed -n 's/^Done \(.*\) in .*/          \1/p' $(B)/corpus/$$n.log; \
	done

# Lines of each decoder's file that the corpus alone reaches.
fuzz-coverage: $(addprefix $(B)/coverage/,$(PICKED_FUZZERS))
	@sh regress/fuzz/coverage.sh $(B)/coverage $(PICKED_FUZZERS)

# make bench [ROW="idle parse"] [ROUNDS=5]: us beside our peers.
ROUNDS = 5
bench: $(B)/all $(addprefix $(B)/bench/,$(BENCHES))
	@python3 regress/bench/run.py -b $(B) -r $(ROUNDS) $(if $(V),-v) $(ROW)

demo:
	@$(MAKE) --no-print-directory deps-build
	@$(MAKE) --no-print-directory -j"$$(nproc)" all
	@$(MAKE) --no-print-directory users
	@BUILD=$(B) sh regress/demo.sh

# make catalogue: who may say what to whom, expanded from common/msg/*.def.
$(eval $(call LINK,$(B)/catalogue,$(B),gcc,regress/catalogue.o,\
    $(call IN,common/msg),$(LIBS_TEST)))
catalogue: $(B)/catalogue
	@$(B)/catalogue

# make man-catalogue: the same into its manual, between two comments there
# (regress/manual-internals.sh).
PAGE = man/cloop-internals.7
man-catalogue: $(B)/catalogue
	@$(B)/catalogue -m >$(B)/catalogue.mdoc
	@awk -v new=$(B)/catalogue.mdoc '/" catalogue: end/ { old = 0 } \
	    !old { print } /" catalogue: begin/ { old = 1; \
	    while ((getline line <new) > 0) print line }' \
	    $(PAGE) >$(B)/page.tmp && cat $(B)/page.tmp >$(PAGE)
	@rm -f $(B)/page.tmp $(B)/catalogue.mdoc

# --------------------------------------------------------------------- install

# System users of etc/sysusers.conf; only root can make them.
users:
	@if [ "$$(id -u)" != 0 ]; then :; \
	elif command -v systemd-sysusers >/dev/null; then \
	    systemd-sysusers "$(CURDIR)/etc/sysusers.conf"; \
	else sh etc/make-users etc/sysusers.conf; fi

# Nothing of the administrator's is overwritten; running it again changes
# nothing.  Users and directories are made only on the running system.
INSTALL = install
unitdir = $(prefix)/lib/systemd/system
D = $(DESTDIR)
DATA = $(INSTALL) -m 644
# Units name the installed paths.
SED_PATHS = sed -e 's,/usr/sbin/,$(sbindir)/,g' -e 's,/usr/bin/,$(bindir)/,g' \
	-e 's,/usr/libexec/cloop/,$(CLOOP_LIBEXECDIR)/,g'

install: all
	@echo "  INSTALL $(D)$(prefix), $(D)$(sysconfdir)/cloop"
	@$(INSTALL) -d $(D)$(bindir) $(D)$(sbindir) $(D)$(CLOOP_LIBEXECDIR) \
	    $(D)$(unitdir) $(D)$(prefix)/lib/sysusers.d \
	    $(D)$(prefix)/lib/tmpfiles.d $(D)$(sysconfdir)/cloop
	@$(INSTALL) -d -m 700 $(D)$(sysconfdir)/cloop/keys
	@for p in $(filter $(BIN_PROGS),$(PROGS)); do \
	    $(INSTALL) -m 755 $(B)/$$p $(D)$(bindir)/ || exit 1; done
	@for p in $(filter $(SBIN_PROGS),$(PROGS)); do \
	    $(INSTALL) -m 755 $(B)/$$p $(D)$(sbindir)/ || exit 1; done
	@for p in $(filter $(LIBEXEC_PROGS),$(PROGS)); do \
	    $(INSTALL) -m 755 $(B)/$$p $(D)$(CLOOP_LIBEXECDIR)/ || exit 1; done
	@for f in $(wildcard man/*.[1-9]); do d=$(D)$(mandir)/man$${f##*.}; \
	    $(INSTALL) -d $$d && $(DATA) $$f $$d/ || exit 1; done
	@for f in $(wildcard etc/*.service etc/*.socket); do \
	    $(SED_PATHS) $$f >$(B)/unit.tmp && $(DATA) $(B)/unit.tmp \
		$(D)$(unitdir)/$${f##*/} || exit 1; done; rm -f $(B)/unit.tmp
	@$(DATA) etc/sysusers.conf $(D)$(prefix)/lib/sysusers.d/cloop.conf
	@$(DATA) etc/tmpfiles.conf $(D)$(prefix)/lib/tmpfiles.d/cloop.conf
	@for f in cloopd.conf cloop-agentd.conf; do \
	    t=$(D)$(sysconfdir)/cloop/$$f; \
	    [ -e $$t ] || [ ! -e etc/$$f ] || $(DATA) etc/$$f $$t || exit 1; done
	@set -e; d=$(D)$(datarootdir); c=$(B)/cloopctl; t=$(B)/completion.tmp; \
	$(INSTALL) -d $$d/bash-completion/completions \
	    $$d/zsh/vendor-completions $$d/fish/vendor_completions.d; \
	put() { $$c completion $$1 >$$t && $(DATA) $$t $$d/$$2; }; \
	put bash bash-completion/completions/cloopctl; \
	put zsh zsh/vendor-completions/_cloopctl; \
	put fish fish/vendor_completions.d/cloopctl.fish; rm -f $$t
	@$(INSTALL) -d $(D)$(datarootdir)/cloop
	@$(DATA) etc/enforce-nft.conf $(D)$(datarootdir)/cloop/
	@[ -n "$(D)" ] || [ "$$(id -u)" != 0 ] || \
	    $(MAKE) --no-print-directory users install-dirs

# The directories of etc/tmpfiles.conf, now rather than at the next boot.
install-dirs:
	@sed -n 's/^d *//p' etc/tmpfiles.conf | \
	while read -r path mode user group _; do \
	    [ -d "$$path" ] || $(INSTALL) -d -m "$$mode" -o "$$user" \
		-g "$$group" "$$path" || exit 1; done
	@[ ! -d /run/systemd/system ] || systemctl daemon-reload

clean:
	@for d in obj unit replay attacks asan libfuzzer hooks lint valgrind \
	    coverage bench; do rm -rf $(B)/$$d; done
	@cd $(B) 2>/dev/null && rm -f $(PROGS) || true

distclean: clean
	@rm -rf build autom4te.cache
	@rm -f configure config.log config.status

FORCE:
.PHONY: all asan help lint deps deps-build deps-bench deps-lint check \
	check-slow check-build unit regress peer fuzz fuzz-coverage bench demo \
	users count catalogue man-catalogue install install-dirs clean \
	distclean FORCE
