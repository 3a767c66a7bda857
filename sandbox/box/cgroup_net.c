/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The program, made here instruction by instruction (Linux bpf(2), the BPF
 * instruction set of RFC 9669): load the destination address, compare it
 * with each that is allowed.  In cloop-shim, while it is still root.
 */
#include "cgroup_net.h"

#include <linux/bpf.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <arpa/inet.h>
#include <net/ethernet.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "shim.h"

#define CN_IPV4_DST 16		/* offset in the header, RFC 791 §3.1 */
#define CN_IPV6_DST 24		/* RFC 8200 §3 */
#define CN_STACK (-16)		/* where the address is loaded to */
#define CN_INSNS (32 + MAX_SHIM_PEERS * 5)

/* Targets, until the end of the program is known. */
#define CN_ALLOW 0x7ffe
#define CN_DENY 0x7ffd

struct cn_program {
	struct bpf_insn in[CN_INSNS];
	size_t n;
};

static void
cn_put(struct cn_program *p, uint8_t code, uint8_t dst, uint8_t src,
    int16_t off, int32_t imm)
{
	const struct bpf_insn in = { .code = code, .dst_reg = dst & 0xf,
	    .src_reg = src & 0xf, .off = off, .imm = imm };

	p->in[p->n++] = in;
}

static int32_t
cn_get_word(const uint8_t *addr, size_t i)
{
	int32_t word;

	memcpy(&word, addr + i * sizeof(word), sizeof(word));
	return word;
}

/* bpf_skb_load_bytes(skb, at, fp + CN_STACK, len); a short packet is denied. */
static void
cn_put_load(struct cn_program *p, int32_t at, int32_t len)
{
	cn_put(p, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_6, 0, 0);
	cn_put(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, at);
	cn_put(p, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_10, 0, 0);
	cn_put(p, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_3, 0, 0, CN_STACK);
	cn_put(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_4, 0, 0, len);
	cn_put(p, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_skb_load_bytes);
	cn_put(p, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, CN_DENY, 0);
}

/* Words of one address, which is allowed when all are equal. */
static void
cn_put_peer(struct cn_program *p, const uint8_t *addr, size_t nwords)
{
	size_t i;

	for (i = 0; i + 1 < nwords; i++)
		cn_put(p, BPF_JMP32 | BPF_JNE | BPF_K,
		    (uint8_t)(BPF_REG_6 + i), 0, (int16_t)(nwords - 1 - i),
		    cn_get_word(addr, i));
	cn_put(p, BPF_JMP32 | BPF_JEQ | BPF_K, (uint8_t)(BPF_REG_6 + i), 0,
	    CN_ALLOW, cn_get_word(addr, i));
}

/* One family; the words go to r6..r9, the packet is not needed any more. */
static void
cn_put_family(struct cn_program *p, int family,
    const struct cgroup_peer *peers, size_t npeers)
{
	size_t i, nwords = family == AF_INET ? 1 : 4;

	cn_put_load(p, family == AF_INET ? CN_IPV4_DST : CN_IPV6_DST,
	    (int32_t)(nwords * 4));
	for (i = 0; i < nwords; i++)
		cn_put(p, BPF_LDX | BPF_MEM | BPF_W, (uint8_t)(BPF_REG_6 + i),
		    BPF_REG_10, (int16_t)(CN_STACK + (int)i * 4), 0);
	for (i = 0; i < npeers; i++)
		if (peers[i].family == family)
			cn_put_peer(p, peers[i].addr, nwords);
	cn_put(p, BPF_JMP | BPF_JA, 0, 0, CN_DENY, 0);
}

static void
cn_make(struct cn_program *p, const struct cgroup_peer *peers, size_t npeers)
{
	size_t i, v6, deny, allow;

	p->n = 0;
	cn_put(p, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0, 0);
	cn_put(p, BPF_LDX | BPF_MEM | BPF_W, BPF_REG_7, BPF_REG_6,
	    offsetof(struct __sk_buff, protocol), 0);
	v6 = p->n;
	cn_put(p, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_7, 0, 0,
	    htons(ETHERTYPE_IPV6));
	cn_put(p, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_7, 0, CN_DENY,
	    htons(ETHERTYPE_IP));
	cn_put_family(p, AF_INET, peers, npeers);
	p->in[v6].off = (int16_t)(p->n - v6 - 1);
	cn_put_family(p, AF_INET6, peers, npeers);
	deny = p->n;
	cn_put(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0);
	cn_put(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	allow = p->n;
	cn_put(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1);
	cn_put(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	for (i = 0; i < p->n; i++) {
		if (p->in[i].off == CN_DENY)
			p->in[i].off = (int16_t)(deny - i - 1);
		else if (p->in[i].off == CN_ALLOW)
			p->in[i].off = (int16_t)(allow - i - 1);
	}
}

static int
cn_call(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static int
cn_load(const struct cn_program *p)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_CGROUP_SKB;
	attr.expected_attach_type = BPF_CGROUP_INET_EGRESS;
	attr.insns = (uintptr_t)p->in;
	attr.insn_cnt = (uint32_t)p->n;
	attr.license = (uintptr_t)"ISC";
	return cn_call(BPF_PROG_LOAD, &attr);
}

int
cgroup_peer_parse(const char *text, struct cgroup_peer *p)
{
	memset(p, 0, sizeof(*p));
	if (inet_pton(AF_INET, text, p->addr) == 1)
		p->family = AF_INET;
	else if (inet_pton(AF_INET6, text, p->addr) == 1)
		p->family = AF_INET6;
	else
		return CL_FORMAT;
	return CL_OK;
}

int
cgroup_limit_net(const struct cgroup *c, const struct cgroup_peer *peers,
    size_t n)
{
	struct cn_program p;
	union bpf_attr attr;
	int fd, r;

	if (n > MAX_SHIM_PEERS)
		return CL_LIMIT;
	if (!cgroup_is_open(c)) {
		errno = ENOENT;
		return CL_UNSUPPORTED;
	}
	cn_make(&p, peers, n);
	if ((fd = cn_load(&p)) != -1) {
		memset(&attr, 0, sizeof(attr));
		attr.target_fd = (uint32_t)c->dir_fd;
		attr.attach_bpf_fd = (uint32_t)fd;
		attr.attach_type = BPF_CGROUP_INET_EGRESS;
		r = cn_call(BPF_PROG_ATTACH, &attr);
		close(fd);
		if (r == 0)
			return CL_OK;
	}
	return errno == EPERM || errno == ENOSYS || errno == EACCES ||
	    errno == EINVAL ? CL_UNSUPPORTED : CL_SYSTEM;
}
