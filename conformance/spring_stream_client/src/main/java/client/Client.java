package client;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.core.RabbitAdmin;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.cloud.stream.binder.PollableMessageSource;
import org.springframework.cloud.stream.binding.BindingsLifecycleController;
import org.springframework.cloud.stream.function.StreamBridge;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.ParameterizedTypeReference;
import org.springframework.messaging.support.MessageBuilder;
import org.springframework.util.MimeTypeUtils;

/** The topologies of Spring Cloud Stream, as its binder declares them: each method is one case. */
final class Client {
    private static final long PATIENCE_MS = 60_000;
    private static final String INPUT = "receive-in-0";

    private interface Case {
        void run() throws Exception;
    }

    private final String url;
    private final RabbitTemplate template;
    private final RabbitAdmin admin;
    /** The destination of the current case. */
    private String name = "";

    private Client(String url) {
        this.url = url;
        var factory = new CachingConnectionFactory();
        factory.setUri(url);
        template = new RabbitTemplate(factory);
        admin = new RabbitAdmin(factory);
    }

    /** Prints a line for each case. */
    public static void main(String[] words) {
        var client = new Client(words[0]);
        client.cases().forEach((name, run) -> {
            client.name = name + "." + UUID.randomUUID();
            try {
                run.run();
                System.out.println(name + ": done");
            } catch (Exception | AssertionError failure) {
                System.out.println(name + ": " + failure);
                failure.printStackTrace();
            }
            client.delete();
        });
        // Its threads end in their own time.
        System.exit(0);
    }

    private Map<String, Case> cases() {
        var cases = new LinkedHashMap<String, Case>();
        cases.put("anonymous", this::anonymous);
        cases.put("batched", this::batched);
        cases.put("grouped", this::grouped);
        cases.put("partitioned", this::partitioned);
        cases.put("polled", this::polled);
        cases.put("prioritized", this::prioritized);
        cases.put("quorum", this::quorum);
        cases.put("rejected", this::rejected);
        cases.put("republished", this::republished);
        cases.put("required", this::required);
        cases.put("retried", this::retried);
        cases.put("routed", this::routed);
        return cases;
    }

    private void delete() {
        admin.deleteExchange(name);
        for (String queue : List.of("group", "group-0", "group-1", "group.dlq")) {
            admin.deleteQueue(name + "." + queue);
        }
    }

    /** A consumer without a group has a queue for as long as it runs. */
    private void anonymous() throws Exception {
        String queue;
        try (var app = app(Receiving.class)) {
            send(app, "one");
            var received = app.getBean(Receiver.class).next();
            expect("one", received.getPayload());
            queue = received.getHeaders().get("amqp_consumerQueue", String.class);
            expect(true, queue.startsWith(name + ".anonymous."));
        }
        await(() -> admin.getQueueInfo(queue) == null);
    }

    /** Batches of the producer are taken apart, and the consumer has batches of its own. */
    private void batched() throws Exception {
        try (var app = app(ReceivingBatches.class,
                "bindings.receive-in-0.group=group",
                "bindings.receive-in-0.consumer.batch-mode=true",
                "rabbit.bindings.receive-in-0.consumer.enable-batching=true",
                "rabbit.bindings.receive-in-0.consumer.batch-size=10",
                "rabbit.bindings.receive-in-0.consumer.receive-timeout=200",
                "rabbit.bindings.out.producer.batching-enabled=true",
                "rabbit.bindings.out.producer.batch-size=5",
                "rabbit.bindings.out.producer.batch-timeout=200")) {
            var sent = new ArrayList<String>();
            for (int number = 0; number < 17; number++) {
                sent.add("number " + number);
                send(app, "number " + number);
            }
            var received = new ArrayList<String>();
            while (received.size() < sent.size()) {
                received.addAll(app.getBean(BatchReceiver.class).next().getPayload());
            }
            expect(sent, received);
        }
    }

    /** The queue of a group keeps messages while its consumers are away. */
    private void grouped() throws Exception {
        try (var app = app(Receiving.class, "bindings.receive-in-0.group=group")) {
            send(app, "one");
            expect("one", app.getBean(Receiver.class).next().getPayload());
            var bindings = app.getBean(BindingsLifecycleController.class);
            bindings.changeState(INPUT, BindingsLifecycleController.State.STOPPED);
            send(app, "two");
            await(() -> admin.getQueueInfo(name + ".group").getMessageCount() == 1);
            bindings.changeState(INPUT, BindingsLifecycleController.State.STARTED);
            expect("two", app.getBean(Receiver.class).next().getPayload());
        }
    }

    /** Each instance has the queue of its partition. */
    private void partitioned() throws Exception {
        String[] consuming = {
            "bindings.receive-in-0.group=group",
            "bindings.receive-in-0.consumer.partitioned=true",
            "instance-count=2",
            "bindings.out.producer.partition-count=2",
            "bindings.out.producer.partition-key-expression=payload.length()",
            "bindings.out.producer.partition-selector-expression=#root",
        };
        try (var even = app(Receiving.class, with(consuming, "instance-index=0"));
                var odd = app(Receiving.class, with(consuming, "instance-index=1"))) {
            for (String body : List.of("a", "bb", "ccc", "dddd")) {
                send(even, body);
            }
            expect("bb", even.getBean(Receiver.class).next().getPayload());
            expect("dddd", even.getBean(Receiver.class).next().getPayload());
            expect("a", odd.getBean(Receiver.class).next().getPayload());
            expect("ccc", odd.getBean(Receiver.class).next().getPayload());
            expect(0L, admin.getQueueInfo(name + ".group-0").getMessageCount() + 0L);
            expect(0L, admin.getQueueInfo(name + ".group-1").getMessageCount() + 0L);
        }
    }

    /** The application asks for each message. */
    private void polled() throws Exception {
        try (var app = app(Plain.class,
                "pollable-source=polled",
                "bindings.polled-in-0.destination=" + name,
                "bindings.polled-in-0.group=group")) {
            send(app, "one");
            var source = app.getBean(PollableMessageSource.class);
            var received = new ArrayList<Object>();
            var type = new ParameterizedTypeReference<String>() {};
            await(() -> source.poll(message -> received.add(message.getPayload()), type));
            expect(List.of("one"), received);
            await(() -> admin.getQueueInfo(name + ".group").getMessageCount() == 0);
        }
    }

    /** Messages of a high priority overtake others that wait. */
    private void prioritized() throws Exception {
        try (var app = app(Receiving.class,
                "bindings.receive-in-0.group=group",
                "bindings.receive-in-0.consumer.auto-startup=false",
                "rabbit.bindings.receive-in-0.consumer.max-priority=10")) {
            for (int priority : List.of(1, 9, 5)) {
                send(app, "priority " + priority, Map.of("priority", priority));
            }
            await(() -> admin.getQueueInfo(name + ".group").getMessageCount() == 3);
            var bindings = app.getBean(BindingsLifecycleController.class);
            bindings.changeState(INPUT, BindingsLifecycleController.State.STARTED);
            for (int priority : List.of(9, 5, 1)) {
                expect("priority " + priority, app.getBean(Receiver.class).next().getPayload());
            }
        }
    }

    /** A quorum queue counts deliveries; the last one becomes a dead letter. */
    private void quorum() throws Exception {
        try (var app = app(Receiving.class,
                "bindings.receive-in-0.group=group",
                "bindings.receive-in-0.consumer.max-attempts=1",
                "rabbit.bindings.receive-in-0.consumer.quorum.enabled=true",
                "rabbit.bindings.receive-in-0.consumer.quorum.delivery-limit=2",
                "rabbit.bindings.receive-in-0.consumer.requeue-rejected=true",
                "rabbit.bindings.receive-in-0.consumer.auto-bind-dlq=true",
                "rabbit.bindings.receive-in-0.consumer.republish-to-dlq=false",
                "rabbit.bindings.receive-in-0.consumer.dlq-quorum.enabled=true")) {
            send(app, "always faulty");
            expect("delivery_limit", death(deadLetter("always faulty"), "reason"));
            expect(3, app.getBean(Receiver.class).attempts());
        }
    }

    /** A message that is rejected becomes a dead letter. */
    private void rejected() throws Exception {
        try (var app = app(Receiving.class,
                "bindings.receive-in-0.group=group",
                "bindings.receive-in-0.consumer.max-attempts=1",
                "rabbit.bindings.receive-in-0.consumer.auto-bind-dlq=true",
                "rabbit.bindings.receive-in-0.consumer.republish-to-dlq=false")) {
            send(app, "always faulty");
            var found = deadLetter("always faulty");
            expect("rejected", death(found, "reason"));
            expect(name + ".group", death(found, "queue"));
            expect(name, death(found, "exchange"));
        }
    }

    /** The binder itself publishes a message that cannot be handled, with the reason. */
    private void republished() throws Exception {
        try (var app = app(Receiving.class,
                "bindings.receive-in-0.group=group",
                "bindings.receive-in-0.consumer.max-attempts=2",
                "bindings.receive-in-0.consumer.back-off-initial-interval=10",
                "rabbit.bindings.receive-in-0.consumer.auto-bind-dlq=true",
                "rabbit.bindings.receive-in-0.consumer.republish-to-dlq=true")) {
            send(app, "always faulty");
            var headers = deadLetter("always faulty").getMessageProperties().getHeaders();
            expect(name, headers.get("x-original-exchange"));
            expect(true, headers.get("x-exception-stacktrace").toString().contains("as planned"));
            expect(2, app.getBean(Receiver.class).attempts());
        }
    }

    /** The producer makes the queues of groups that have no consumer yet. */
    private void required() throws Exception {
        try (var app = app(Plain.class,
                "bindings.out.producer.required-groups=group",
                "output-bindings=out")) {
            send(app, "early");
            await(() -> admin.getQueueInfo(name + ".group").getMessageCount() == 1);
        }
        try (var app = app(Receiving.class, "bindings.receive-in-0.group=group")) {
            expect("early", app.getBean(Receiver.class).next().getPayload());
        }
    }

    /** The queue of dead letters gives them back after a while. */
    private void retried() throws Exception {
        try (var app = app(Receiving.class,
                "bindings.receive-in-0.group=group",
                "bindings.receive-in-0.consumer.max-attempts=1",
                "rabbit.bindings.receive-in-0.consumer.auto-bind-dlq=true",
                "rabbit.bindings.receive-in-0.consumer.republish-to-dlq=false",
                "rabbit.bindings.receive-in-0.consumer.dlq-ttl=100",
                "rabbit.bindings.receive-in-0.consumer.dlq-dead-letter-exchange=")) {
            send(app, "faulty once");
            var received = app.getBean(Receiver.class).next();
            expect("faulty once", received.getPayload());
            var deaths = received.getHeaders().get("x-death", List.class);
            expect(2, deaths.size());
            expect(2, app.getBean(Receiver.class).attempts());
        }
    }

    /** A direct exchange, with several keys of one queue. */
    private void routed() throws Exception {
        try (var app = app(Receiving.class,
                "bindings.receive-in-0.group=group",
                "rabbit.bindings.receive-in-0.consumer.exchange-type=direct",
                "rabbit.bindings.receive-in-0.consumer.binding-routing-key=red,green",
                "rabbit.bindings.receive-in-0.consumer.binding-routing-key-delimiter=,",
                "rabbit.bindings.out.producer.exchange-type=direct",
                "rabbit.bindings.out.producer.routing-key-expression=headers['colour']")) {
            for (String colour : List.of("red", "blue", "green")) {
                send(app, colour, Map.of("colour", colour));
            }
            expect("red", app.getBean(Receiver.class).next().getPayload());
            expect("green", app.getBean(Receiver.class).next().getPayload());
        }
    }

    /** An application with that destination for its input and its output. */
    private ConfigurableApplicationContext app(Class<?> source, String... properties) {
        var all = new LinkedHashMap<String, Object>();
        all.put("spring.rabbitmq.addresses", url);
        all.put("spring.main.banner-mode", "off");
        all.put("logging.level.root", "off");
        all.put("spring.cloud.stream.bindings.out.destination", name);
        if (source != Plain.class) {
            all.put("spring.cloud.function.definition", "receive");
            all.put("spring.cloud.stream.bindings.receive-in-0.destination", name);
        }
        for (String property : properties) {
            int at = property.indexOf('=');
            all.put("spring.cloud.stream." + property.substring(0, at), property.substring(at + 1));
        }
        return new SpringApplicationBuilder(source)
                .web(WebApplicationType.NONE)
                .properties(all)
                .run();
    }

    private static void send(ConfigurableApplicationContext app, String body) {
        send(app, body, Map.of());
    }

    private static void send(ConfigurableApplicationContext app, String body, Map<String, ?> headers) {
        var message = MessageBuilder.withPayload(body).copyHeaders(headers).build();
        expect(true, app.getBean(StreamBridge.class).send("out", message, MimeTypeUtils.TEXT_PLAIN));
    }

    private Message deadLetter(String body) {
        var found = template.receive(name + ".group.dlq", PATIENCE_MS);
        if (found == null) {
            throw new AssertionError("no dead letter");
        }
        expect(body, new String(found.getBody()));
        return found;
    }

    private static Object death(Message letter, String field) {
        List<Map<String, ?>> deaths = letter.getMessageProperties().getXDeathHeader();
        return deaths.get(0).get(field);
    }

    private static String[] with(String[] properties, String one) {
        var all = new ArrayList<>(List.of(properties));
        all.add(one);
        return all.toArray(String[]::new);
    }

    private static void await(BooleanSupplier condition) throws InterruptedException {
        long until = System.currentTimeMillis() + PATIENCE_MS;
        while (!condition.getAsBoolean()) {
            expect(true, System.currentTimeMillis() < until);
            Thread.sleep(20);
        }
    }

    private static void expect(Object wanted, Object found) {
        if (!wanted.equals(found)) {
            throw new AssertionError("wanted " + wanted + ", found " + found);
        }
    }

    /** Keeps what it receives, unless that says that it is faulty. */
    static class Keeper<T> {
        private final BlockingQueue<T> received = new LinkedBlockingQueue<>();
        private volatile int attempts;

        synchronized void keep(T message, String body) {
            attempts += 1;
            if (body.equals("always faulty") || body.equals("faulty once") && attempts == 1) {
                throw new IllegalStateException("as planned");
            }
            received.add(message);
        }

        T next() throws InterruptedException {
            var next = received.poll(PATIENCE_MS, TimeUnit.MILLISECONDS);
            if (next == null) {
                throw new AssertionError("nothing came");
            }
            return next;
        }

        int attempts() {
            return attempts;
        }
    }

    static final class Receiver extends Keeper<org.springframework.messaging.Message<String>>
            implements Consumer<org.springframework.messaging.Message<String>> {
        @Override
        public void accept(org.springframework.messaging.Message<String> message) {
            keep(message, message.getPayload());
        }
    }

    static final class BatchReceiver extends Keeper<org.springframework.messaging.Message<List<String>>>
            implements Consumer<org.springframework.messaging.Message<List<String>>> {
        @Override
        public void accept(org.springframework.messaging.Message<List<String>> message) {
            keep(message, "");
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Receiving {
        @Bean
        Receiver receive() {
            return new Receiver();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class ReceivingBatches {
        @Bean
        BatchReceiver receive() {
            return new BatchReceiver();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Plain {}
}
