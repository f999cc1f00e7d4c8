# Declares, publishes, consumes and acknowledges by Mojo::RabbitMQ::Client: host, port, queue.
use strict;
use warnings;
use Mojo::IOLoop;
use Mojo::RabbitMQ::Client;

my ($host, $port, $queue) = @ARGV;
my $fail = sub { shift; die join ' ', 'failed:', map { $_ // 'undef' } @_ };
my $client = Mojo::RabbitMQ::Client->new(url => "amqp://test:test\@$host:$port/");
my $got = 0;

$client->catch($fail);
$client->on(open => sub {
    my $channel = Mojo::RabbitMQ::Client::Channel->new;
    $channel->catch($fail);
    $channel->on(open => sub { declare(shift) });
    shift->open_channel($channel);
});
$client->on(close => sub { Mojo::IOLoop->stop });

sub declare {
    my $channel = shift;
    my $declared = $channel->declare_queue(queue => $queue, auto_delete => 1);
    $declared->on(success => sub { consume($channel) });
    $declared->deliver;
}

sub consume {
    my $channel = shift;
    my $consumer = $channel->consume(queue => $queue, no_ack => 0);
    $consumer->on(success => sub {
        $channel->publish(exchange => '', routing_key => $queue, body => "$_", header => {})->deliver for 1 .. 3;
    });
    $consumer->on(message => sub {
        my (undef, $message) = @_;
        print $message->{body}->to_raw_payload, "\n";
        $channel->ack($message)->deliver;
        $client->close if ++$got == 3;
    });
    $consumer->deliver;
}

$client->connect;
Mojo::IOLoop->timer(20 => sub { die 'no end came' });
Mojo::IOLoop->start;
print "closed\n";
