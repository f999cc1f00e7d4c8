# A consumer of bunny as its documentation shows it: `ruby bunny.rb URL QUEUE`.
require "bunny"
require "json"

$stdout.sync = true
connection = Bunny.new(ARGV[0], log_level: :fatal)
connection.start
channel = connection.create_channel
queue = channel.queue(ARGV[1], durable: true)
queue.subscribe do |_delivery, _properties, body|
  channel.default_exchange.publish("bunny #{JSON.parse(body)["data"]}", routing_key: "returning.answers")
end
puts "there"
sleep
