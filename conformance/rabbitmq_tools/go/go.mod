module crosstie/conformance/rabbitmq_tools

go 1.20

require (
	github.com/michaelklishin/rabbit-hole/v2 v2.12.0
	github.com/onsi/ginkgo v1.16.5
	github.com/onsi/gomega v1.16.0
	github.com/rabbitmq/amqp091-go v1.16.0
	github.com/streadway/amqp v1.0.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/fsnotify/fsnotify v1.5.1 // indirect
	github.com/nxadm/tail v1.4.8 // indirect
	golang.org/x/net v0.0.0-20210805182204-aaa1db679c0d // indirect
	golang.org/x/sys v0.0.0-20211031064116-611d5d643895 // indirect
	golang.org/x/text v0.3.6 // indirect
	gopkg.in/tomb.v1 v1.0.0-20141024135613-dd632973f1e7 // indirect
	gopkg.in/yaml.v2 v2.4.0 // indirect
)
