package client;

import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DeliverCallback;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;

/** A consumer of RabbitMQ's own client as documented, with its automatic recovery: URL QUEUE. */
final class Returning {
    private static final Pattern TOKEN = Pattern.compile("\"data\": *\"([^\"]*)\"");

    private Returning() {}

    public static void main(String[] words) throws Exception {
        var factory = new ConnectionFactory();
        factory.setUri(words[0]);
        var channel = factory.newConnection().createChannel();
        channel.queueDeclare(words[1], true, false, false, null);
        DeliverCallback heard = (tag, message) -> {
            var found = TOKEN.matcher(new String(message.getBody(), StandardCharsets.UTF_8));
            if (found.find()) {
                var answer = ("Java's amqp-client " + found.group(1)).getBytes(StandardCharsets.UTF_8);
                channel.basicPublish("", "returning.answers", null, answer);
            }
        };
        channel.basicConsume(words[1], true, heard, tag -> {});
        System.out.println("there");
    }
}
