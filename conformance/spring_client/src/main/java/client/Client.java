package client;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.amqp.core.AcknowledgeMode;
import org.springframework.amqp.core.Queue;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.core.RabbitAdmin;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.amqp.rabbit.listener.SimpleMessageListenerContainer;
import org.springframework.amqp.rabbit.transaction.RabbitTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** Spring AMQP's transactions, as its users have them: each method is one case. */
final class Client {
    private static final long PATIENCE_MS = 30_000;

    private final CachingConnectionFactory factory;
    private final RabbitTemplate template;
    private final RabbitAdmin admin;
    private final TransactionTemplate transaction;
    private final String queue;

    private Client(CachingConnectionFactory factory) {
        this.factory = factory;
        template = new RabbitTemplate(factory);
        template.setChannelTransacted(true);
        admin = new RabbitAdmin(factory);
        transaction = new TransactionTemplate(new RabbitTransactionManager(factory));
        queue = admin.declareQueue(new Queue("", false, true, false));
    }

    public static void main(String[] words) throws Exception {
        var factory = new CachingConnectionFactory();
        factory.setUri(words[1]);
        try {
            var client = new Client(factory);
            switch (words[0]) {
                case "local" -> client.commitsAlone();
                case "committed" -> client.commits();
                case "rolled-back" -> client.rollsBack();
                case "received" -> client.givesBackWhatItReceived();
                case "listener" -> client.listens();
                default -> throw new IllegalArgumentException(words[0]);
            }
        } finally {
            factory.destroy();
        }
        System.out.println("done");
        // Its threads end in their own time.
        System.exit(0);
    }

    /** Without a transaction around it each publication is one. */
    private void commitsAlone() {
        template.convertAndSend(queue, "alone");
        expect("alone", received());
    }

    private void commits() {
        transaction.executeWithoutResult(status -> {
            template.convertAndSend(queue, "first");
            template.convertAndSend(queue, "second");
            expect(0, waiting());
        });
        expect("first", received());
        expect("second", received());
    }

    private void rollsBack() {
        try {
            transaction.executeWithoutResult(status -> {
                template.convertAndSend(queue, "never");
                throw new IllegalStateException("as planned");
            });
            throw new AssertionError("the transaction went through");
        } catch (IllegalStateException planned) {
            expect(0, waiting());
        }
    }

    private void givesBackWhatItReceived() {
        template.convertAndSend(queue, "request");
        transaction.executeWithoutResult(status -> {
            expect("request", received());
            template.convertAndSend(queue, "answer");
            status.setRollbackOnly();
        });
        expect("request", received());
        expect(0, waiting());
    }

    /** A listener whose first attempt fails after it has published. */
    private void listens() throws InterruptedException {
        var answers = admin.declareQueue(new Queue("", false, true, false));
        var attempts = new AtomicInteger();
        BlockingQueue<Boolean> redelivered = new LinkedBlockingQueue<>();
        var container = new SimpleMessageListenerContainer(factory);
        container.setQueueNames(queue);
        container.setChannelTransacted(true);
        container.setTransactionManager(new RabbitTransactionManager(factory));
        container.setAcknowledgeMode(AcknowledgeMode.AUTO);
        container.setErrorHandler(planned -> {});
        container.setMessageListener(message -> {
            redelivered.add(message.getMessageProperties().isRedelivered());
            var attempt = attempts.incrementAndGet();
            template.convertAndSend(answers, "attempt " + attempt);
            if (attempt == 1) {
                throw new IllegalStateException("as planned");
            }
        });
        container.afterPropertiesSet();
        container.start();
        template.convertAndSend(queue, "work");
        expect(false, redelivered.poll(PATIENCE_MS, TimeUnit.MILLISECONDS));
        expect(true, redelivered.poll(PATIENCE_MS, TimeUnit.MILLISECONDS));
        expect("attempt 2", template.receiveAndConvert(answers, PATIENCE_MS));
        container.stop();
        expect(0, waiting());
        expect(2, attempts.get());
    }

    private Object received() {
        return template.receiveAndConvert(queue, PATIENCE_MS);
    }

    private int waiting() {
        return admin.getQueueInfo(queue).getMessageCount();
    }

    private static void expect(Object wanted, Object found) {
        if (!wanted.equals(found)) {
            throw new AssertionError("wanted " + wanted + ", found " + found);
        }
    }
}
