// Command nexus_client has nexus' client use the features of WAMP that it speaks, or passes on.
//
//	nexus_client WHAT SERIALIZER URL
//
// It says nothing and exits with 0 if what it was asked for is so.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"time"

	"github.com/gammazero/nexus/v3/client"
	"github.com/gammazero/nexus/v3/transport/serialize"
	"github.com/gammazero/nexus/v3/wamp"
)

// Far beyond what anything takes on a loaded machine.
const patience = 30 * time.Second

var serializers = map[string]serialize.Serialization{
	"json": client.JSON, "msgpack": client.MSGPACK, "cbor": client.CBOR,
}

var checks = map[string]func(*run){
	"patterns": patterns, "shared": shared, "sharded_calls": shardedCalls,
	"sharded_events": shardedEvents, "rerouting": rerouting, "retained": retained,
	"history": history, "meta": meta, "testaments": testaments, "timeouts": timeouts,
	"canceling": canceling, "progressive": progressive, "passthru": passthru,
	"lists": lists, "reflection": reflection, "returning": returning,
}

type run struct {
	url        string
	serializer serialize.Serialization
}

func main() {
	check, known := checks[os.Args[1]]
	if !known {
		log.Fatal("there is no such check")
	}
	log.SetFlags(0)
	check(&run{os.Args[3], serializers[os.Args[2]]})
}

// join returns a session; features are what its callee announces beside the client's own.
func (r *run) join(features ...string) *client.Client {
	config := client.Config{
		Realm: "realm1", Serialization: r.serializer, ResponseTimeout: patience,
		Logger: log.New(io.Discard, "", 0),
	}
	if len(features) > 0 {
		announced := wamp.Dict{}
		for _, feature := range features {
			announced[feature] = true
		}
		config.HelloDetails = wamp.Dict{"roles": wamp.Dict{
			"caller": wamp.Dict{}, "callee": wamp.Dict{"features": announced},
			"publisher": wamp.Dict{}, "subscriber": wamp.Dict{},
		}}
	}
	joined, err := client.ConnectNet(context.Background(), r.url, config)
	must(err)
	return joined
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// same holds two values to be the same, as they are written.
func same(what string, found, expected any) {
	if fmt.Sprint(found) != fmt.Sprint(expected) {
		log.Fatalf("%s: %v, and not %v", what, found, expected)
	}
}

func call(c *client.Client, procedure string, options wamp.Dict, args ...any) (*wamp.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.Call(ctx, procedure, options, args, nil, nil)
}

// called returns the first result.
func called(c *client.Client, procedure string, options wamp.Dict, args ...any) any {
	result, err := call(c, procedure, options, args...)
	must(err)
	return result.Arguments[0]
}

// refused returns the error's URI.
func refused(c *client.Client, procedure string, options wamp.Dict, args ...any) wamp.URI {
	result, err := call(c, procedure, options, args...)
	if err == nil {
		log.Fatalf("%s: %v, and no error", procedure, result)
	}
	refusal, is := err.(client.RPCError)
	if !is {
		log.Fatal(err)
	}
	return refusal.Err.Error
}

func publish(c *client.Client, topic string, options wamp.Dict, args ...any) {
	if options == nil {
		options = wamp.Dict{}
	}
	options["acknowledge"] = true
	must(c.Publish(topic, options, args, nil))
}

func subscribe(c *client.Client, topic string, options wamp.Dict) chan *wamp.Event {
	events := make(chan *wamp.Event, 100)
	must(c.SubscribeChan(topic, events, options))
	return events
}

func next(events chan *wamp.Event) *wamp.Event {
	select {
	case event := <-events:
		return event
	case <-time.After(patience):
		log.Fatal("no event came")
		return nil
	}
}

// answering has a session answer with that value.
func answering(c *client.Client, procedure string, options wamp.Dict, value any) {
	handler := func(context.Context, *wamp.Invocation) client.InvokeResult {
		return client.InvokeResult{Args: wamp.List{value}}
	}
	must(c.Register(procedure, handler, options))
}

func patterns(r *run) {
	one, two := r.join(), r.join()
	prefix := subscribe(one, "com.pre", wamp.Dict{"match": "prefix"})
	wildcard := subscribe(two, "com..wild", wamp.Dict{"match": "wildcard"})
	publish(two, "com.prefix", nil, 1)
	publish(one, "com.a.wild", nil, 2)
	same("prefix", next(prefix).Details["topic"], "com.prefix")
	same("wildcard", next(wildcard).Details["topic"], "com.a.wild")
	handler := func(_ context.Context, invocation *wamp.Invocation) client.InvokeResult {
		return client.InvokeResult{Args: wamp.List{invocation.Details["procedure"]}}
	}
	must(one.Register("com.call", handler, wamp.Dict{"match": "prefix"}))
	must(one.Register("org..call", handler, wamp.Dict{"match": "wildcard"}))
	same("prefix", called(two, "com.called", nil), "com.called")
	same("wildcard", called(two, "org.a.call", nil), "org.a.call")
	answering(one, "com.called", nil, "exact")
	same("exact", called(two, "com.called", nil), "exact")
}

func shared(r *run) {
	caller := r.join()
	for place, invoke := range []string{"roundrobin", "first", "last", "x_least_busy"} {
		procedure := fmt.Sprintf("com.shared%d", place)
		for _, name := range []string{"a", "b"} {
			answering(r.join(), procedure, wamp.Dict{"invoke": invoke}, name)
		}
		found := []any{}
		for range 4 {
			found = append(found, called(caller, procedure, nil))
		}
		expected := map[string]string{
			"roundrobin": "[a b a b]", "first": "[a a a a]", "last": "[b b b b]",
			"x_least_busy": "[a a a a]",
		}
		same(invoke, found, expected[invoke])
	}
	err := r.join().Register("com.shared0", nil, wamp.Dict{"invoke": "last"})
	if err == nil {
		log.Fatal("another policy of the same procedure is taken")
	}
}

func shardedCalls(r *run) {
	caller := r.join()
	same("feature", caller.HasFeature("dealer", "sharded_registration"), true)
	for _, name := range []string{"a", "b", "c"} {
		answering(r.join(), "com.sharded", wamp.Dict{"invoke": "roundrobin", "nkey": name}, name)
	}
	shards := map[any]bool{}
	for resource := range 20 {
		options := wamp.Dict{"runmode": "partition", "rkey": fmt.Sprint("r", resource)}
		shard := called(caller, "com.sharded", options)
		same("the same resource", called(caller, "com.sharded", options), shard)
		shards[shard] = true
	}
	same("shards of 20 resources", len(shards), 3)
	same("without a resource", refused(caller, "com.sharded", wamp.Dict{"runmode": "partition"}),
		"wamp.error.invalid_argument")
}

func shardedEvents(r *run) {
	publisher := r.join()
	one := subscribe(r.join(), "com.sharded", wamp.Dict{"nkey": "a"})
	two := subscribe(r.join(), "com.sharded", wamp.Dict{"nkey": "b"})
	all := subscribe(r.join(), "com.sharded", nil)
	for number := range 40 {
		publish(publisher, "com.sharded", wamp.Dict{"rkey": fmt.Sprint("r", number%20)}, number)
	}
	publish(publisher, "com.sharded", nil, "end")
	heard := map[string]int{}
	count := func(events chan *wamp.Event) int {
		numbers := 0
		for {
			said := fmt.Sprint(next(events).Arguments[0])
			if said == "end" {
				return numbers
			}
			heard[said]++
			numbers++
		}
	}
	same("everybody's", count(all), 40)
	first, second := count(one), count(two)
	same("of one shard or the other", first+second, 40)
	// Both events of a resource are one shard's.
	same("pairs", first%2, 0)
	if first == 0 || second == 0 {
		log.Fatal("one shard has every resource")
	}
}

func rerouting(r *run) {
	caller := r.join()
	away := func(context.Context, *wamp.Invocation) client.InvokeResult {
		return client.InvokeResult{Err: "wamp.error.unavailable"}
	}
	must(r.join("call_reroute").Register("com.rerouted", away, wamp.Dict{"invoke": "first"}))
	same("of one callee", refused(caller, "com.rerouted", nil), "wamp.error.no_available_callee")
	answering(r.join("call_reroute"), "com.rerouted", wamp.Dict{"invoke": "first"}, "the next")
	same("of two", called(caller, "com.rerouted", nil, 1), "the next")
	// Without the feature it is the caller's.
	must(r.join().Register("com.not", away, nil))
	same("unannounced", refused(caller, "com.not", nil), "wamp.error.unavailable")
}

func retained(r *run) {
	publisher, late := r.join(), r.join()
	publish(publisher, "com.retained", wamp.Dict{"retain": true}, "kept")
	event := next(again(late, "com.retained"))
	same("retained", event.Details["retained"], true)
	same("what", event.Arguments, "[kept]")
	publish(publisher, "com.passing", wamp.Dict{"retain": true, "retain_ms": 0}, "gone")
	events := again(late, "com.passing")
	publish(publisher, "com.passing", nil, "new")
	same("what comes", next(events).Arguments, "[new]")
}

// again subscribes, and then asks for what is retained: this client drops what comes right behind
// its first SUBSCRIBED.
func again(c *client.Client, topic string) chan *wamp.Event {
	events := subscribe(c, topic, nil)
	must(c.SubscribeChan(topic, events, wamp.Dict{"get_retained": true}))
	return events
}

func history(r *run) {
	publisher, reader := r.join(), r.join()
	for number := range 3 {
		publish(publisher, "com.history.topic", nil, number)
	}
	subscription := called(reader, "wamp.subscription.lookup", nil, "com.history.topic")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	kwargs := wamp.Dict{"limit": 2, "reverse": true}
	result, err := reader.Call(ctx, "wamp.subscription.get_events", nil, wamp.List{subscription}, kwargs, nil)
	must(err)
	found := []any{}
	for _, event := range events(result) {
		arguments, _ := wamp.AsList(event["args"])
		found = append(found, arguments[0])
	}
	same("the newest two", found, "[2 1]")
}

// events are the arguments, or the list that is the only one.
func events(result *wamp.Result) []wamp.Dict {
	found := result.Arguments
	if list, is := wamp.AsList(found[0]); is {
		found = list
	}
	all := []wamp.Dict{}
	for _, each := range found {
		event, _ := wamp.AsDict(each)
		all = append(all, event)
	}
	return all
}

func meta(r *run) {
	watcher := r.join()
	joined := subscribe(watcher, "wamp.session.on_join", nil)
	left := subscribe(watcher, "wamp.session.on_leave", nil)
	other := r.join()
	details, _ := wamp.AsDict(next(joined).Arguments[0])
	same("who joined", details["session"], other.ID())
	list, _ := wamp.AsList(called(watcher, "wamp.session.list", nil))
	ids := []string{}
	for _, id := range list {
		ids = append(ids, fmt.Sprint(id))
	}
	same("listed", slices.Contains(ids, fmt.Sprint(other.ID())), true)
	same("counted", called(watcher, "wamp.session.count", nil), len(ids))
	got, _ := wamp.AsDict(called(watcher, "wamp.session.get", nil, other.ID()))
	same("got", got["authrole"], "anonymous")
	_, err := call(watcher, "wamp.session.kill", nil, other.ID(), "com.reason")
	must(err)
	select {
	case <-other.Done():
	case <-time.After(patience):
		log.Fatal("who is killed stays")
	}
	same("why", other.RouterGoodbye().Reason, "com.reason")
	same("who left", next(left).Arguments[0], other.ID())
	same("of nobody", refused(watcher, "wamp.session.get", nil, 1), "wamp.error.no_such_session")
	answering(watcher, "com.found", nil, 1)
	registration, _ := watcher.RegistrationID("com.found")
	same("found", called(r.join(), "wamp.registration.match", nil, "com.found"), registration)
	callees, _ := wamp.AsList(called(r.join(), "wamp.registration.list_callees", nil, registration))
	same("callees", callees, []any{watcher.ID()})
}

func testaments(r *run) {
	heir, mortal := r.join(), r.join()
	events := subscribe(heir, "com.testament", nil)
	_, err := call(mortal, "wamp.session.add_testament", nil, "com.testament", wamp.List{"gone"}, wamp.Dict{})
	must(err)
	publish(mortal, "com.testament", nil, "here")
	same("first", next(events).Arguments, "[here]")
	must(mortal.Close())
	same("then", next(events).Arguments, "[gone]")
}

func timeouts(r *run) {
	callee, caller := r.join(), r.join()
	ended := make(chan bool, 1)
	handler := func(ctx context.Context, _ *wamp.Invocation) client.InvokeResult {
		<-ctx.Done()
		ended <- true
		return client.InvocationCanceled
	}
	must(callee.Register("com.slow", handler, nil))
	same("too slow", refused(caller, "com.slow", wamp.Dict{"timeout": 50}), "wamp.error.timeout")
	interrupted(ended)
}

func interrupted(ended chan bool) {
	select {
	case <-ended:
	case <-time.After(patience):
		log.Fatal("the callee is not interrupted")
	}
}

func canceling(r *run) {
	callee := r.join()
	begun, ended := make(chan bool, 1), make(chan bool, 1)
	handler := func(ctx context.Context, _ *wamp.Invocation) client.InvokeResult {
		begun <- true
		<-ctx.Done()
		ended <- true
		return client.InvocationCanceled
	}
	must(callee.Register("com.canceled", handler, nil))
	for _, mode := range []string{"kill", "killnowait"} {
		caller := r.join()
		must(caller.SetCallCancelMode(mode))
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-begun
			cancel()
		}()
		_, err := caller.Call(ctx, "com.canceled", nil, nil, nil, nil)
		if err == nil {
			log.Fatalf("%s: it has a result", mode)
		}
		interrupted(ended)
		// The session goes on.
		same("counted", called(caller, "wamp.session.count", nil) != nil, true)
	}
}

func progressive(r *run) {
	callee, caller := r.join(), r.join()
	sum := 0
	handler := func(ctx context.Context, invocation *wamp.Invocation) client.InvokeResult {
		number, _ := wamp.AsInt64(invocation.Arguments[0])
		sum += int(number)
		if more, _ := invocation.Details["progress"].(bool); more {
			must(callee.SendProgress(ctx, wamp.List{sum}, nil))
			return client.InvokeResult{Err: wamp.InternalProgressiveOmitResult}
		}
		return client.InvokeResult{Args: wamp.List{sum}}
	}
	must(callee.Register("com.summed", handler, nil))
	part := 0
	parts := func(context.Context) (wamp.Dict, wamp.List, wamp.Dict, error) {
		part++
		return wamp.Dict{"progress": part < 4}, wamp.List{part}, nil, nil
	}
	seen := []any{}
	heard := func(result *wamp.Result) { seen = append(seen, result.Arguments[0]) }
	result, err := caller.CallProgressive(context.Background(), "com.summed", parts, heard)
	must(err)
	same("in all", result.Arguments, "[10]")
	same("on the way", seen, "[1 3 6]")
}

func passthru(r *run) {
	callee, caller := r.join(), r.join()
	options := func() wamp.Dict {
		return wamp.Dict{"ppt_scheme": "x_own", "ppt_serializer": "msgpack"}
	}
	handler := func(_ context.Context, invocation *wamp.Invocation) client.InvokeResult {
		return client.InvokeResult{Args: invocation.Arguments, Options: options()}
	}
	must(callee.Register("com.passed", handler, nil))
	same("a call", called(caller, "com.passed", options(), "inside"), "inside")
	events := subscribe(callee, "com.passed", nil)
	publish(caller, "com.passed", options(), "an event")
	event := next(events)
	same("an event", event.Arguments, "[an event]")
	same("its scheme", event.Details["ppt_scheme"], "x_own")
}

func lists(r *run) {
	publisher, one, two := r.join(), r.join(), r.join()
	first, second := subscribe(one, "com.listed", nil), subscribe(two, "com.listed", nil)
	own := subscribe(publisher, "com.listed", nil)
	publish(publisher, "com.listed", wamp.Dict{"eligible": wamp.List{one.ID()}}, 1)
	publish(publisher, "com.listed", wamp.Dict{"exclude": wamp.List{one.ID()}}, 2)
	publish(publisher, "com.listed", wamp.Dict{"exclude_me": false, "disclose_me": true}, 3)
	same("who is eligible", next(first).Arguments, "[1]")
	same("who is not excluded", next(second).Arguments, "[2]")
	for _, events := range []chan *wamp.Event{first, second, own} {
		event := next(events)
		same("everybody", event.Arguments, "[3]")
		same("by whom", event.Details["publisher"], publisher.ID())
	}
}

func reflection(r *run) {
	one, two := r.join(), r.join()
	same("new", called(one, "wamp.reflect.define", nil, "com.defined", wamp.Dict{"args": 2}), true)
	described, _ := wamp.AsDict(called(two, "wamp.reflection.procedure.describe", nil, "com.defined"))
	same("described", described["args"], 2)
	undefined := subscribe(two, "wamp.reflect.on_undefine", nil)
	must(one.Close())
	same("undefined", next(undefined).Arguments[2], "com.defined")
}
