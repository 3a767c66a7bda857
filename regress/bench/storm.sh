# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The cloop authors; see LICENSE.
#
# A fleet comes back after kill -9 and a restart, each agent with its random
# delay: time until 99 % are authenticated again, less the window into which
# the first delays are spread; and how even the attempts are.
. "$SRC/regress/bench/lib.sh"

AGENTS=${AGENTS:-3000}
WINDOW=1.25			# the first delay is at most this long

metric back s lower \
    "from the loss until 99 % of $AGENTS are back, less $WINDOW s of jitter"
metric peak x lower "most attempts in 100 ms over their mean"
goal back nchan 0.7
goal_value peak 3
say "nchan: the same clients against nginx, upgraded counts as back."

# results SIDE
results()
{
	[ "$(load_get back)" -ge $((AGENTS * 99 / 100)) ] ||
	    fatal "$1: they do not come back: $answer"
	sample back "$1" "$(calc "max($(load_get t99) - $WINDOW, 0.01)")"
	sample peak "$1" "$(calc "$(load_get peak) / $(load_get mean)")"
}

start_nginx()
{
	modules=/usr/lib/nginx/modules
	have nginx && [ -e $modules/ngx_nchan_module.so ] || return 1
	mkdir -p "$TMP/nginx"
	cat >"$TMP/nginx/conf" <<-END
	load_module $modules/ngx_nchan_module.so;
	daemon off; pid $TMP/nginx/pid; error_log $TMP/nginx/error.log;
	worker_processes auto; worker_rlimit_nofile $(ulimit -n);
	events { worker_connections 16000; }
	http {
		access_log off; client_body_temp_path $TMP/nginx/b;
		proxy_temp_path $TMP/nginx/p; fastcgi_temp_path $TMP/nginx/f;
		uwsgi_temp_path $TMP/nginx/u; scgi_temp_path $TMP/nginx/s;
		server {
			listen 127.0.0.1:$1 ssl reuseport backlog=4096;
			ssl_certificate $TMP/keys/tls.crt;
			ssl_certificate_key $TMP/keys/tls.key;
			ssl_protocols TLSv1.3; ssl_session_tickets off;
			location = /sub {
				nchan_subscriber websocket;
				nchan_channel_id fleet;
			}
		}
	}
	END
	peer_port=$1
	peer_run nginx -e "$TMP/nginx/error.log" -c "$TMP/nginx/conf"
}

# The monitor dies first, or it would start others.
kill_tree()
{
	kill -KILL $(tree_of "$1")
	e2e_stop "$1" KILL
}

e2e_hub "MaxPending 10000"
fleet "$AGENTS"
nginx_port=$(free_port)
if start_nginx "$nginx_port"; then
	version nginx "$(nginx -v 2>&1), nchan $(dpkg-query -W \
	    -f '${Version}' libnginx-mod-nchan)"
	peer_stop
	with_nginx=yes
fi
e2e_stop "$hub_pid"
for round in $(rounds); do
	e2e_start_hub
	load_agents 1 "$AGENTS" -t 15000
	load_begin 1 "storm 60"
	kill_tree "$hub_pid"
	e2e_start_hub
	load_end 1
	results ours
	load_stop 1
	e2e_stop "$hub_pid"
	[ -n "$with_nginx" ] || continue
	start_nginx "$nginx_port"
	load_start 1 -a "127.0.0.1:$nginx_port" -n "$AGENTS" -u /sub
	load_begin 1 "storm 60"
	kill_tree "$peer_pid"
	start_nginx "$nginx_port"
	load_end 1
	results nchan
	load_stop 1
	peer_stop
done
