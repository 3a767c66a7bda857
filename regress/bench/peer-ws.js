// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The cloop authors; see LICENSE.
//
// A peer of the bench: npm's ws behind node's TLS.  It answers a heartbeat
// with the JSON that a hub answers.  usage: node peer-ws.js PORT CERT KEY
'use strict';
const fs = require('fs');
const https = require('https');
const { WebSocketServer } = require('ws');

const [port, cert, key] = process.argv.slice(2);
const server = https.createServer({
	cert: fs.readFileSync(cert),
	key: fs.readFileSync(key),
	minVersion: 'TLSv1.3',
});
const sessions = new WebSocketServer({
	server, perMessageDeflate: false, maxPayload: 1048576,
});

sessions.on('connection', (session) => {
	session.on('error', () => {});
	session.on('message', (data) => {
		const frame = JSON.parse(data);
		if (frame.v < 1 || frame.v > 26 || frame.type !== 'heartbeat' ||
		    !Number.isInteger(frame.payload.seq)) {
			session.close(1000);
			return;
		}
		session.send(JSON.stringify({
			v: frame.v, type: 'heartbeat_ack', id: frame.id,
			payload: {
				seq: frame.payload.seq,
				server_time: new Date().toISOString(),
			},
		}));
	});
});
server.listen({ port: Number(port), host: '127.0.0.1', backlog: 4096 },
    () => console.log('ready'));
