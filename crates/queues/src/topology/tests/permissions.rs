//! Permissions, checked in RabbitMQ's order: a user may configure names that begin with `c`, write `w`, read `r`.

use super::check;

/// What there is, by names that nobody may touch (`z`) and others, and who the following steps are of.
const OTHERS: &str = "
exchange cx direct
exchange rx direct
exchange wx direct
exchange zx direct
queue rq
queue wq
queue zq
user u ^c ^w ^r
";

fn check_user(script: &str) {
    check(&[OTHERS, script].concat());
}

#[test]
fn exchanges_that_a_user_may_not_configure() {
    check_user(
        "
exchange zx2 direct
  403 ACCESS_REFUSED - access to exchange 'zx2' in vhost '/' refused for user 'u'
exchange zx direct
  403 ACCESS_REFUSED - access to exchange 'zx' in vhost '/' refused for user 'u'
exchange amq.zx2 direct
  403 ACCESS_REFUSED - access to exchange 'amq.zx2' in vhost '/' refused for user 'u'
exchange zx direct passive
exchange zx nonsense
  503 COMMAND_INVALID - unknown exchange type 'nonsense'
exchange cx direct
exchange cx2 direct alternate-exchange=wx
  403 ACCESS_REFUSED - access to exchange 'cx2' in vhost '/' refused for user 'u'
exchange cx direct alternate-exchange=wx
  406 PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'cx' in vhost '/': received the value 'wx' of type 'longstr' but current is none
delete zx
  403 ACCESS_REFUSED - access to exchange 'zx' in vhost '/' refused for user 'u'
delete zxn
  403 ACCESS_REFUSED - access to exchange 'zxn' in vhost '/' refused for user 'u'
delete amq.topic
  403 ACCESS_REFUSED - deletion of system exchange 'amq.topic' in vhost '/' not allowed
delete ''
  403 ACCESS_REFUSED - operation not permitted on the default exchange
",
    );
}

#[test]
fn names_that_a_user_may_not_bind() {
    check_user(
        "
bind zq zx k
  403 ACCESS_REFUSED - access to queue 'zq' in vhost '/' refused for user 'u'
bind wq zx k
  403 ACCESS_REFUSED - access to exchange 'zx' in vhost '/' refused for user 'u'
bind wq rx k
bind wq nx k
  403 ACCESS_REFUSED - access to exchange 'nx' in vhost '/' refused for user 'u'
bind nq nx k
  403 ACCESS_REFUSED - access to queue 'nq' in vhost '/' refused for user 'u'
bind zq '' k
  403 ACCESS_REFUSED - access to queue 'zq' in vhost '/' refused for user 'u'
bind wq '' k
  403 ACCESS_REFUSED - operation not permitted on the default exchange
unbind zq zx k
  403 ACCESS_REFUSED - access to queue 'zq' in vhost '/' refused for user 'u'
unbind wq zx k
  403 ACCESS_REFUSED - access to exchange 'zx' in vhost '/' refused for user 'u'
bind_exchange zx rx k
  403 ACCESS_REFUSED - access to exchange 'zx' in vhost '/' refused for user 'u'
bind_exchange wx zx k
  403 ACCESS_REFUSED - access to exchange 'zx' in vhost '/' refused for user 'u'
bind_exchange '' zx k
  403 ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'u'
bind_exchange wx '' k
  403 ACCESS_REFUSED - operation not permitted on the default exchange
",
    );
}

#[test]
fn exchanges_that_a_user_may_not_feed() {
    check_user(
        "
publish zx
  403 ACCESS_REFUSED - access to exchange 'zx' in vhost '/' refused for user 'u'
publish nx
  403 ACCESS_REFUSED - access to exchange 'nx' in vhost '/' refused for user 'u'
publish wx
publish ''
  403 ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'u'
publish wnone
  404 NOT_FOUND - no exchange 'wnone' in vhost '/'
declare cq9 x-dead-letter-exchange=wx
  403 ACCESS_REFUSED - access to queue 'cq9' in vhost '/' refused for user 'u'
declare rq9 x-dead-letter-exchange=zx
  403 ACCESS_REFUSED - access to exchange 'zx' in vhost '/' refused for user 'u'
declare rq9 x-dead-letter-exchange=''
  403 ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'u'
declare rq9 x-dead-letter-exchange=wx
",
    );
}

#[test]
fn internal_exchanges_are_fed_by_others_only() {
    check(
        "
exchange int direct internal
publish int
  403 ACCESS_REFUSED - cannot publish to internal exchange 'int' in vhost '/'
publish amq.rabbitmq.trace
  403 ACCESS_REFUSED - cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/'
exchange a fanout
queue q
bind_exchange int a ''
bind q int k
publish a
route a k
  q
",
    );
}
