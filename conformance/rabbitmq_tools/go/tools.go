//go:build tools

// Package tools names the modules whose own tests are compiled from here.
package tools

import (
	_ "github.com/michaelklishin/rabbit-hole/v2"
	_ "github.com/onsi/ginkgo"
	_ "github.com/onsi/gomega"
	_ "github.com/rabbitmq/amqp091-go"
	_ "github.com/streadway/amqp"
	_ "go.uber.org/goleak"
)
