// Rascal with a vhost that it makes over the management API, and a message through it.
'use strict';
const { BrokerAsPromised: Broker } = require('rascal');

async function main([amqp, management]) {
  const config = {
    vhosts: {
      made: {
        assert: true,
        check: true,
        connection: {
          url: `amqp://guest:guest@${amqp}/made`,
          management: { url: `http://guest:guest@${management}` },
        },
        exchanges: ['orders'],
        queues: ['orders'],
        bindings: ['orders -> orders'],
        publications: { orders: { exchange: 'orders' } },
        subscriptions: { orders: { queue: 'orders' } },
      },
    },
  };
  const broker = await Broker.create(config);
  broker.on('error', (error) => { throw error; });
  const subscription = await broker.subscribe('orders');
  const received = new Promise((resolve) => {
    subscription.on('message', (message, content, acknowledge) => {
      acknowledge();
      resolve(content);
    });
  });
  await broker.publish('orders', 'hello');
  console.log(await received);
  await broker.shutdown();
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
