package main

import (
	"encoding/json"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The time that an application waits before it dials again.
const pause = 100 * time.Millisecond

// comeBack consumes for ever, and answers each message: this client does not connect anew, so that
// the application does. It says what the client tells of each end.
func comeBack(url string) error {
	for {
		watched, err := consume(url)
		if err != nil {
			time.Sleep(pause)
			continue
		}
		fmt.Println("there")
		reported := <-watched
		if reported == nil {
			fmt.Println("ended: no error")
			continue
		}
		// A connection that is gone is EOF or a reset, as it happens.
		whose := "the client's own"
		if reported.Server {
			whose = "the broker's"
		}
		fmt.Printf("ended: `NotifyClose` with %d, %s\n", reported.Code, whose)
	}
}

// consume returns what the end of a new connection is told to.
func consume(url string) (chan *amqp.Error, error) {
	connection, err := amqp.Dial(url)
	if err != nil {
		return nil, err
	}
	watched := connection.NotifyClose(make(chan *amqp.Error, 1))
	channel, err := connection.Channel()
	if err != nil {
		return nil, err
	}
	queue, err := channel.QueueDeclare("returning.go", true, false, false, false, nil)
	if err != nil {
		return nil, err
	}
	messages, err := channel.Consume(queue.Name, "", true, false, false, false, nil)
	if err != nil {
		return nil, err
	}
	go answer(channel, messages)
	return watched, nil
}

func answer(channel *amqp.Channel, messages <-chan amqp.Delivery) {
	for message := range messages {
		var ping struct{ Data string }
		if json.Unmarshal(message.Body, &ping) != nil {
			continue
		}
		said := amqp.Publishing{Body: []byte("amqp091-go " + ping.Data)}
		// An answer that is lost with the connection is missed by the test.
		_ = channel.Publish("", "returning.answers", false, false, said)
	}
}
