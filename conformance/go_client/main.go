// Command client does with RabbitMQ's own client for Go what its users rely on, and says what
// became of it, a line for each thing that was not as it should be. test_amqp_go.py runs it.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Nothing here takes long; what does not come is to be told, not to be waited for.
const patience = 30 * time.Second

// As many as showed an error each where the broker was first to close the socket.
const closes = 300

func main() {
	does := map[string]func(string) error{
		"closes":       closeGracefully,
		"forced":       reportWhatIsNoGrace,
		"large":        introduceAtLength,
		"returning":    comeBack,
		"transactions": transact,
	}
	if len(os.Args) != 3 || does[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: client closes|forced|large|returning|transactions URL")
		os.Exit(2)
	}
	if err := does[os.Args[1]](os.Args[2]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// closeGracefully opens and closes connections, of which none may report an error: neither from
// Close, nor to who watches the connection and its channel.
func closeGracefully(url string) error {
	var wrong []string
	for number := 1; number <= closes; number++ {
		if err := closeOne(url); err != nil {
			wrong = append(wrong, fmt.Sprintf("%d: %v", number, err))
		}
	}
	if wrong != nil {
		return fmt.Errorf("%d of %d: %s", len(wrong), closes, strings.Join(wrong, "; "))
	}
	return nil
}

func closeOne(url string) error {
	connection, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	ofConnection := connection.NotifyClose(make(chan *amqp.Error, 1))
	ofChannel := channel.NotifyClose(make(chan *amqp.Error, 1))
	if err := connection.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	for _, watched := range []chan *amqp.Error{ofConnection, ofChannel} {
		reported, err := next(watched)
		if err != nil {
			return err
		}
		if reported != nil {
			return fmt.Errorf("reported: %w", reported)
		}
	}
	return nil
}

// reportWhatIsNoGrace has the broker close the connection, which must be reported, with the reason.
func reportWhatIsNoGrace(url string) error {
	connection, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	watched := connection.NotifyClose(make(chan *amqp.Error, 1))
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	// A type of exchange that nobody has is a fault of the whole connection.
	err = channel.ExchangeDeclare("go", "nonsense", false, false, false, false, nil)
	if err == nil {
		return fmt.Errorf("an unknown type of exchange was declared")
	}
	reported, err := next(watched)
	if err != nil {
		return err
	}
	if reported == nil || reported.Code != amqp.CommandInvalid || !reported.Server {
		return fmt.Errorf("reported: %v", reported)
	}
	return nil
}

// introduceAtLength sends more about the client than a frame before tuning may hold.
func introduceAtLength(url string) error {
	properties := amqp.NewConnectionProperties()
	properties["padding"] = strings.Repeat("x", 4096)
	connection, err := amqp.DialConfig(url, amqp.Config{Properties: properties})
	if err == nil {
		_ = connection.Close()
		return fmt.Errorf("a frame of more than 4096 bytes was taken before tuning")
	}
	return nil
}

// transact publishes and gives back, and publishes and commits.
func transact(url string) error {
	connection, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	defer connection.Close()
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	queue, err := channel.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		return err
	}
	if err := channel.Tx(); err != nil {
		return err
	}
	for _, step := range []struct {
		body string
		end  func() error
		left int
	}{
		{"never", channel.TxRollback, 0},
		{"once", channel.TxCommit, 1},
		{"never either", channel.TxRollback, 1},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		message := amqp.Publishing{Body: []byte(step.body)}
		err := channel.PublishWithContext(ctx, "", queue.Name, false, false, message)
		cancel()
		if err != nil {
			return err
		}
		if err := step.end(); err != nil {
			return err
		}
		found, err := channel.QueueDeclarePassive(queue.Name, false, true, true, false, nil)
		if err != nil {
			return err
		}
		if found.Messages != step.left {
			return fmt.Errorf("after %q: %d messages, not %d", step.body, found.Messages, step.left)
		}
	}
	message, ok, err := channel.Get(queue.Name, false)
	if err != nil || !ok || string(message.Body) != "once" {
		return fmt.Errorf("got %v %q: %v", ok, message.Body, err)
	}
	// An acknowledgement is given back as well.
	if err := message.Ack(false); err != nil {
		return err
	}
	if err := channel.TxRollback(); err != nil {
		return err
	}
	if err := message.Ack(false); err != nil {
		return err
	}
	return channel.TxCommit()
}

// next returns what a watcher is told; nil where the connection ended without an error.
func next(watched chan *amqp.Error) (*amqp.Error, error) {
	select {
	case err := <-watched:
		return err, nil
	case <-time.After(patience):
		return nil, fmt.Errorf("nothing was reported")
	}
}
