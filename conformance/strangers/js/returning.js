/**
 * Consumes one queue with a client of AMQP as its documentation shows it, and answers each message.
 *
 *     node returning.js CLIENT URL QUEUE
 *
 * A message is {"pattern": "ping", "data": TOKEN}; the answer, TOKEN, goes to the queue `returning.answers`. The program
 * says "there" once it consumes for the first time, "away" once the client gives up, and never connects anew by
 * itself: that is the client's affair.
 */

'use strict';

const [name, url, queue] = process.argv.slice(2);
const ANSWERS = 'returning.answers';
const there = () => console.log('there');
// A client that throws an error which it does not catch itself does not come back.
const ignore = () => {};

function token(body) {
    return `${name} ${JSON.parse(body.toString()).data}`;
}

async function foofoo(options) {
    const rabbit = require('foo-foo-mq');
    rabbit.on('unreachable', () => console.log('away'));
    rabbit.handle({ queue, type: '#' }, (message) => {
        message.ack();
        const body = token(Buffer.isBuffer(message.body) ? message.body : JSON.stringify(message.body));
        const answer = { routingKey: 'answers', body, contentType: 'text/plain' };
        // The exchange's channel may be back later than the queue's.
        const publish = () => rabbit.publish('returning', answer).catch(() => setTimeout(publish, 100));
        publish();
    });
    await rabbit.configure({
        // Its own two seconds for a handshake are short on a machine that starts many programs.
        connection: { uri: url, timeout: 60_000, ...options },
        exchanges: [{ name: 'returning', type: 'direct', durable: true }],
        queues: [
            { name: queue, durable: true, subscribe: true },
            { name: ANSWERS, durable: true },
        ],
        bindings: [{ exchange: 'returning', target: ANSWERS, keys: ['answers'] }],
    });
    there();
}

const clients = {
    'amqp-connection-manager': () => {
        const connection = require('amqp-connection-manager').connect([url]);
        const channel = connection.createChannel({
            setup: async (raw) => {
                await raw.assertQueue(queue, { durable: true });
                await raw.consume(queue, (message) => {
                    raw.ack(message);
                    channel.sendToQueue(ANSWERS, Buffer.from(token(message.content)));
                });
                there();
            },
        });
    },
    '@golevelup/nestjs-rabbitmq': async () => {
        const { AmqpConnection } = require('@golevelup/nestjs-rabbitmq');
        const connection = new AmqpConnection({ uri: url });
        await connection.init();
        const answer = (message) =>
            connection.publish('', ANSWERS, Buffer.from(`${name} ${message.data}`));
        const options = { queue, createQueueIfNotExists: true, queueOptions: { durable: true } };
        await connection.createSubscriber(answer, options, 'returning');
        there();
    },
    '@nestjs/microservices': async () => {
        require('reflect-metadata');
        const { Controller, Module } = require('@nestjs/common');
        const { NestFactory } = require('@nestjs/core');
        const { ClientRMQ, EventPattern, Transport } = require('@nestjs/microservices');
        const answers = new ClientRMQ({ urls: [url], queue: ANSWERS, queueOptions: { durable: true } });
        class Returning {
            ping(data) {
                // The answers' connection may be back later than the server's; an error without a handler ends Node.js.
                const again = () => setTimeout(() => this.ping(data), 100);
                answers.emit('pong', `${name} ${data}`).subscribe({ error: again });
            }
        }
        const ping = Object.getOwnPropertyDescriptor(Returning.prototype, 'ping');
        EventPattern('ping')(Returning.prototype, 'ping', ping);
        Controller()(Returning);
        class Application {}
        Module({ controllers: [Returning] })(Application);
        const options = { urls: [url], queue, queueOptions: { durable: true } };
        const strategy = { transport: Transport.RMQ, options, logger: false };
        const application = await NestFactory.createMicroservice(Application, strategy);
        await application.listen();
        there();
    },
    rascal: async () => {
        const { BrokerAsPromised, withDefaultConfig } = require('rascal');
        const broker = await BrokerAsPromised.create(
            withDefaultConfig({
                vhosts: {
                    '/': {
                        connection: { url },
                        queues: [queue, ANSWERS],
                        publications: { answers: { queue: ANSWERS } },
                        subscriptions: { pings: { queue, contentType: 'text/plain' } },
                    },
                },
            }),
        );
        broker.on('error', ignore);
        const pings = await broker.subscribe('pings');
        pings.on('error', ignore);
        pings.on('message', async (message, content, acknowledge) => {
            acknowledge();
            const answer = await broker.publish('answers', token(content));
            answer.on('error', ignore);
        });
        there();
    },
    'foo-foo-mq': () => foofoo({}),
    // By default it gives up after three attempts within 0.1 s.
    'foo-foo-mq, `retryLimit: 1000`': () => foofoo({ retryLimit: 1000 }),
    'rabbitmq-client': () => {
        const { Connection } = require('rabbitmq-client');
        const connection = new Connection(url);
        connection.on('error', ignore);
        const publisher = connection.createPublisher({ confirm: true });
        const consumer = connection.createConsumer(
            { queue, queueOptions: { durable: true } },
            (message) => publisher.send(ANSWERS, token(JSON.stringify(message.body))),
        );
        consumer.on('error', ignore);
        consumer.on('ready', there);
    },
    'Node-RED': async () => {
        const fs = require('fs');
        const os = require('os');
        const path = require('path');
        const RED = require('node-red');
        const userDir = fs.mkdtempSync(path.join(os.tmpdir(), 'node-red-'));
        process.on('exit', () => fs.rmSync(userDir, { recursive: true, force: true }));
        process.on('SIGTERM', () => process.exit(0));
        const { hostname, port, username, password } = new URL(url);
        const shared = { z: 'flow', server: 'server', iotype: '4' };
        const flows = [
            { id: 'flow', type: 'tab', label: 'returning' },
            { id: 'server', type: 'amqp-server', host: hostname, port },
            { id: 'in', type: 'amqp in', ...shared, ioname: queue, wires: [['answer']] },
            {
                id: 'answer',
                type: 'function',
                z: 'flow',
                func: `msg.payload = ${JSON.stringify(name)} + ' ' + msg.payload.data; return msg;`,
                outputs: 1,
                wires: [['out']],
            },
            { id: 'out', type: 'amqp out', ...shared, ioname: ANSWERS, wires: [] },
        ];
        fs.writeFileSync(path.join(userDir, 'flows.json'), JSON.stringify(flows));
        const credentials = { server: { user: username, password } };
        fs.writeFileSync(path.join(userDir, 'flows_cred.json'), JSON.stringify(credentials));
        const settings = {
            userDir,
            flowFile: 'flows.json',
            credentialSecret: false,
            httpAdminRoot: false,
            httpNodeRoot: false,
            nodesDir: path.dirname(require.resolve('node-red-contrib-amqp/package.json')),
            logging: { console: { level: 'error' } },
        };
        const connecting = new Set(['in', 'out']);
        RED.init(settings);
        RED.events.on('node-status', ({ id, status }) => {
            if (status.text === 'connected' && connecting.delete(id) && connecting.size === 0) {
                there();
            }
        });
        await RED.start();
    },
    moleculer: async () => {
        // Its queues are its own: one node calls the other, and tells the test by another connection.
        const { ServiceBroker } = require('moleculer');
        const start = async (nodeID, services) => {
            const broker = new ServiceBroker({ nodeID, transporter: url, logger: false, requestTimeout: 1000 });
            services.forEach((service) => broker.createService(service));
            await broker.start();
            return broker;
        };
        await start('serving', [{ name: 'echo', actions: { say: (context) => context.params.token } }]);
        const calling = await start('calling', []);
        await calling.waitForServices('echo');
        process.stdin.on('data', async (lines) => {
            for (const line of lines.toString().split('\n').filter(Boolean)) {
                for (;;) {
                    const said = await calling.call('echo.say', { token: line }).catch(ignore);
                    if (said === line) {
                        break;
                    }
                    await new Promise((resolve) => setTimeout(resolve, 100));
                }
                console.log(`answer ${name} ${line}`);
            }
        });
        there();
    },
};

clients[name]();
