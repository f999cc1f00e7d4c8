# Declares, publishes, consumes and acknowledges by AnyEvent::RabbitMQ: host, port, queue.
use strict;
use warnings;
use AnyEvent;
use AnyEvent::RabbitMQ;

my ($host, $port, $queue) = @ARGV;
my $done = AnyEvent->condvar;
my $fail = sub { $done->croak(join ' ', 'failed:', map { ref $_ ? ref $_ : $_ // 'undef' } @_) };
my $client = AnyEvent::RabbitMQ->new->load_xml_spec;

$client->connect(
    host => $host, port => $port, user => 'test', pass => 'test', vhost => '/', timeout => 5,
    on_failure => $fail, on_read_failure => $fail, on_return => $fail,
    on_close => sub { },
    on_success => sub {
        $client->open_channel(on_failure => $fail, on_close => $fail, on_success => \&declare);
    },
);

sub declare {
    my $channel = shift;
    $channel->declare_queue(
        queue => $queue, auto_delete => 1, on_failure => $fail,
        on_success => sub { consume($channel) },
    );
}

sub consume {
    my $channel = shift;
    $channel->consume(
        queue => $queue, no_ack => 0, on_failure => $fail,
        on_success => sub {
            $channel->publish(exchange => '', routing_key => $queue, body => "$_") for 1 .. 3;
        },
        on_consume => sub {
            my $delivery = shift;
            print $delivery->{body}->payload, "\n";
            $channel->ack(delivery_tag => $delivery->{deliver}->method_frame->delivery_tag);
            $done->send if $delivery->{body}->payload eq '3';
        },
    );
}

$done->recv;
my $closed = AnyEvent->condvar;
$client->close(on_success => sub { $closed->send }, on_failure => sub { $closed->croak("@_") });
$closed->recv;
print "closed\n";
