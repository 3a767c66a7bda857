# What a unit test or a fuzz target links besides itself.  Without a line
# here: $(COMMON).  LIBS_ adds libraries to libbsd.  A test that includes a
# .c file must not list its object.

#OBJS_test_ws = net/ws.o $(COMMON)
#LIBS_test_token = $(LIB_CRYPTO)

OBJS_test_field = $(SPEC) $(COMMON)
OBJS_test_jsonw = $(SPEC) $(COMMON)
OBJS_test_spec = $(FRAME) $(COMMON)
LIBS_test_spec = $(LIB_JSONC)
OBJS_test_json = $(FRAME) $(COMMON)
LIBS_test_json = $(LIB_JSONC)
OBJS_test_frame = $(FRAME) $(COMMON)
LIBS_test_frame = $(LIB_JSONC)
OBJS_test_golden = $(FRAME) $(COMMON)
LIBS_test_golden = $(LIB_JSONC)
OBJS_fuzz_json = $(FRAME) $(COMMON)
LIBS_fuzz_json = $(LIB_JSONC)
OBJS_fuzz_frame = $(FRAME) $(COMMON)
LIBS_fuzz_frame = $(LIB_JSONC)
OBJS_fuzz_spec = $(SPEC) $(COMMON)

OBJS_test_canon = common/canon.o $(COMMON)
OBJS_fuzz_canon = common/canon.o $(COMMON)
OBJS_fuzz_conf = $(filter-out common/conf.o,$(COMMON))

SPAWN = sandbox/spawn.o $(SELF) $(COMMON)
SPAWN_LIBS = $(LIB_SECCOMP) $(LIB_CAPNG)
OBJS_test_shim = sandbox/shim_job.o sandbox/cgroup.o common/spool.o \
	$(FILTERS) $(SPAWN)
LIBS_test_shim = $(SPAWN_LIBS)

OBJS_test_store = $(STORE) $(COMMON)
LIBS_test_store = $(LIB_SQLITE) $(LIB_CRYPTO)
OBJS_test_audit = $(STORE) $(COMMON)
LIBS_test_audit = $(LIB_SQLITE) $(LIB_CRYPTO)
OBJS_test_token = $(STORE) $(COMMON)
LIBS_test_token = $(LIB_SQLITE) $(LIB_CRYPTO)

OBJS_test_ws = net/ws.o $(COMMON)
OBJS_test_pin = common/pin.o $(COMMON)
OBJS_test_http1 = net/http1.o net/http1_format.o $(COMMON)
LIBS_test_http1 = $(LIB_CRYPTO)

# The device monitor (agent/).
OBJS_test_url = agent/url.o $(COMMON)
OBJS_fuzz_url = agent/url.o $(COMMON)
OBJS_test_bundle = common/bundle.o common/flatjson.o $(COMMON)
OBJS_fuzz_bundle = common/bundle.o common/flatjson.o $(COMMON)
OBJS_test_credential = agent/credential.o common/bundle.o \
	common/flatjson.o $(COMMON)
OBJS_fuzz_credential = agent/credential.o agent/handledir.o agent/procid.o \
	common/bundle.o common/flatjson.o $(COMMON)
OBJS_test_workdir = agent/workdir.o $(COMMON)
OBJS_test_environment = agent/environment.o $(COMMON)
OBJS_test_agent_conf = agent/agent_conf.o $(COMMON)
OBJS_test_handledir = agent/handledir.o agent/procid.o $(COMMON)
OBJS_test_start = agent/start_job.o agent/work_check.o \
	agent/environment.o sandbox/shim_job.o $(SPEC) $(SPAWN)
LIBS_test_start = $(SPAWN_LIBS)
OBJS_test_git_env = agent/git_env.o agent/git_net.o agent/forge.o common/devjob.o \
	common/redact.o sandbox/landlock.o $(FILTER_GIT) $(SPEC) $(COMMON)
LIBS_test_git_env = $(LIB_SECCOMP)
OBJS_test_git_tree = agent/git_tree.o $(COMMON)
OBJS_test_work_save = agent/work_save.o agent/workdir.o common/devjob.o \
	$(SPEC) $(COMMON)

OBJS_test_ask = net/ask.o $(COMMON)
OBJS_test_logindex = common/logindex.o $(COMMON)
OBJS_test_hub_log = net/hub_take.o $(SPEC) net/hub_log.o net/hub_logcut.o net/hub_logredact.o \
	common/logindex.o common/redact.o $(COMMON)
LIBS_test_hub_log = $(LIB_CRYPTO)
OBJS_test_tlsio = $(NETIO) $(COMMON)
LIBS_test_tlsio = $(LIB_EVENT) $(LIB_SSL) $(LIB_CRYPTO)
OBJS_test_tlskey = net/tlskey.o $(NETIO) $(COMMON)
LIBS_test_tlskey = $(LIB_EVENT) $(LIB_SSL) $(LIB_CRYPTO)
OBJS_test_hub_route = net/hub_route.o net/hub_conf.o net/hub_source.o \
	net/http1.o net/http1_format.o $(COMMON)
LIBS_test_hub_route = $(LIB_CRYPTO)
OBJS_test_hub_session = $(HUBNET) $(COMMON)
LIBS_test_hub_session = $(LIB_EVENT) $(LIB_SSL) $(LIB_CRYPTO) $(LIB_JSONC)
OBJS_test_hub_frames = $(filter-out net/hub_session.o,$(HUBNET)) $(COMMON)
LIBS_test_hub_frames = $(LIB_EVENT) $(LIB_SSL) $(LIB_CRYPTO) $(LIB_JSONC)
OBJS_test_dupid = priv/dupid.o $(COMMON)
OBJS_test_seal = $(STORE) $(COMMON)
LIBS_test_seal = $(LIB_SQLITE) $(LIB_CRYPTO)
OBJS_test_keyfile = common/signify.o $(STORE) $(COMMON)
LIBS_test_keyfile = $(LIB_SQLITE) $(LIB_CRYPTO)
OBJS_fuzz_token = $(STORE) $(COMMON)
LIBS_fuzz_token = $(LIB_SQLITE) $(LIB_CRYPTO)
OBJS_fuzz_keyfile = common/signify.o store/keyfile.o $(COMMON)
OBJS_test_caps = $(SPEC) $(COMMON)
OBJS_test_spawn = $(SPAWN)
LIBS_test_spawn = $(SPAWN_LIBS)
OBJS_test_self = $(SELF) $(COMMON)
LIBS_test_self = $(SPAWN_LIBS)
OBJS_test_landlock = sandbox/landlock.o $(COMMON)
OBJS_test_cgroup = sandbox/cgroup.o sandbox/cgroup_net.o $(COMMON)
OBJS_test_filter = sandbox/filter_git.o $(FILTERS) $(SELF) $(COMMON)
OBJS_test_bpf = $(FILTERS) $(SELF) $(COMMON)
LIBS_test_bpf = $(SPAWN_LIBS)
LIBS_test_filter = $(SPAWN_LIBS)
OBJS_test_shim_job = sandbox/shim_job.o $(COMMON)
OBJS_test_spool = common/spool.o $(COMMON)
OBJS_fuzz_ws = net/ws.o $(COMMON)
OBJS_fuzz_http1_request = net/http1.o net/http1_format.o $(COMMON)
LIBS_fuzz_http1_request = $(LIB_CRYPTO)
OBJS_fuzz_http1_response = net/http1.o net/http1_format.o $(COMMON)
LIBS_fuzz_http1_response = $(LIB_CRYPTO)
OBJS_fuzz_pin = common/pin.o $(COMMON)
# The differential target does nothing where libwslay is not installed.
OBJS_fuzz_ws_wslay = net/ws.o $(COMMON)
ifneq ($(wildcard /usr/include/wslay/wslay.h),)
LIBS_fuzz_ws_wslay = -lwslay
endif

# The hub's monitor (priv/), all of it but its main.
MONITOR = $(filter-out priv/cloopd.o,$(OBJS_cloopd))
OBJS_test_monitor = $(MONITOR)
LIBS_test_monitor = $(LIBS_cloopd)
OBJS_test_dispatch = $(MONITOR)
LIBS_test_dispatch = $(LIBS_cloopd)
OBJS_test_identity = $(MONITOR)
LIBS_test_identity = $(LIBS_cloopd)
OBJS_test_abandon = $(MONITOR)
LIBS_test_abandon = $(LIBS_cloopd)
OBJS_test_hfiles = $(MONITOR)
LIBS_test_hfiles = $(LIBS_cloopd)
OBJS_test_supervise = $(MONITOR)
LIBS_test_supervise = $(LIBS_cloopd)
OBJS_test_penalty = $(MONITOR)
LIBS_test_penalty = $(LIBS_cloopd)
OBJS_test_fence_nft = sandbox/fence_nft.o sandbox/fence_run.o $(COMMON)
OBJS_test_gates = priv/gates.o priv/refuse.o $(SPEC) $(COMMON)
OBJS_test_config = priv/config.o $(COMMON)
OBJS_test_ctlmsg = common/ctlmsg.o $(SPEC) $(COMMON)
OBJS_test_fetch_backoff = agent/fetch_backoff.o $(COMMON)
OBJS_test_fetch_output = common/spool.o $(FRAME) $(COMMON)
LIBS_test_fetch_output = $(LIB_JSONC)
OBJS_test_cloopd_key = net/tlskey.o $(COMMON)
LIBS_test_cloopd_key = $(LIB_CRYPTO)
OBJS_test_caps_detect = agent/caps_detect.o agent/caps_host.o \
	agent/caps_kvm.o agent/caps_usb.o agent/environment.o \
	agent/work_check.o $(SPEC) $(SPAWN)
LIBS_test_caps_detect = $(SPAWN_LIBS)

OBJS_test_redact = common/redact.o $(COMMON)
OBJS_fuzz_redact = common/redact.o $(COMMON)

# Leases on the device.
LEASE = agent/vault.o agent/secretfiles.o agent/secretfiles_wipe.o
OBJS_test_secretfiles = $(LEASE) $(SPEC) $(COMMON)
OBJS_test_vault = $(LEASE) $(SPEC) $(COMMON)
OBJS_fuzz_vault = $(LEASE) $(SPEC) $(COMMON)
OBJS_fuzz_devlease = $(LEASE) common/devlease.o common/redact.o $(SPEC) \
	$(COMMON)
OBJS_fuzz_leasemsg = common/leasemsg.o common/ctllease.o common/devlease.o \
	$(SPEC) $(COMMON)
OBJS_test_revoke = agent/revoke.o agent/refresh.o common/devlease.o \
	common/spool.o $(LEASE) $(SPEC) $(COMMON)
LIBS_test_revoke = $(LIB_EVENT)
OBJS_test_hub_logredact = $(OBJS_test_hub_log)
LIBS_test_hub_logredact = $(LIB_CRYPTO)
OBJS_test_secret = $(STORE) $(COMMON)
LIBS_test_secret = $(LIB_SQLITE) $(LIB_CRYPTO)
OBJS_test_grant = priv/grant.o priv/secretkind.o $(SPEC) $(STORE) $(COMMON)
LIBS_test_grant = $(LIB_SQLITE) $(LIB_CRYPTO)
OBJS_test_lease = $(MONITOR)
LIBS_test_lease = $(LIBS_cloopd)
OBJS_test_lease_terms = $(MONITOR)
LIBS_test_lease_terms = $(LIBS_cloopd)

# Work that goes and comes back.
OBJS_test_hub_take = net/hub_take.o $(SPEC) $(COMMON)
LIBS_test_hub_take = $(LIB_CRYPTO)
OBJS_test_bundlevet = priv/bundlevet.o priv/bundlevet_git.o priv/gitjob.o \
	sandbox/landlock.o $(FILTER_GIT) $(SPEC) $(COMMON)
LIBS_test_bundlevet = $(LIB_MD) $(LIB_SECCOMP)
OBJS_test_bundleland = $(OBJS_test_bundlevet)
LIBS_test_bundleland = $(LIB_MD) $(LIB_SECCOMP)
OBJS_test_hwork = $(filter-out priv/hwork.o,$(MONITOR))
LIBS_test_hwork = $(LIBS_cloopd)
OBJS_test_fetch_incoming = $(FRAME) $(COMMON)
LIBS_test_fetch_incoming = $(LIB_JSONC)
OBJS_test_fetch_back = common/devjob.o $(FRAME) $(COMMON)
LIBS_test_fetch_back = $(LIB_JSONC)
OBJS_test_shims = $(COMMON)
OBJS_test_wjob = agent/chan.o common/devjob.o sandbox/shim_job.o $(SPEC) \
	$(COMMON)
LIBS_test_wjob = $(LIB_EVENT)
OBJS_fuzz_workmsg = common/devjob.o common/workmsg.o $(SPEC) $(COMMON)

# Fuzz targets of the rest.
OBJS_fuzz_logindex = common/logindex.o $(COMMON)
OBJS_fuzz_spool = common/spool.o $(COMMON)
OBJS_fuzz_flatjson = common/flatjson.o $(COMMON)
OBJS_fuzz_ctlmsg = common/ctlmsg.o common/ctllease.o $(SPEC) $(COMMON)
OBJS_fuzz_frame_form = $(FRAME) $(COMMON)
LIBS_fuzz_frame_form = $(LIB_JSONC)
OBJS_fuzz_route = net/hub_route.o net/hub_conf.o net/http1.o \
	net/http1_format.o $(COMMON)
LIBS_fuzz_route = $(LIB_CRYPTO)
OBJS_fuzz_monitor = $(MONITOR)
LIBS_fuzz_monitor = $(LIBS_cloopd)
