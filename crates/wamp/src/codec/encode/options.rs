//! Writes `Options` and `Details`: non-default values, and attributes passed on.

use std::borrow::Cow;

use super::super::value::{self, Unrepresentable};
use super::super::writer::{Opened, Result, Writer};
use crate::options::ACKNOWLEDGED_DELIVERY;
use crate::{
    CallOptions, CancelMode, CancelOptions, Dict, Disclosed, EventDetails, InterruptOptions,
    InvocationDetails, InvocationPolicy, MatchPolicy, PublishOptions, RegisterOptions,
    ResultDetails, SessionId, Sharding, SubscribeOptions, YieldOptions,
};

/// The entries of one dictionary. How many there will be is not known in front; it is filled in
/// behind, which costs nothing below 16 entries (CBOR: 24).
pub(super) struct Entries<'w, W> {
    writer: &'w mut W,
    dict: Opened,
    unrepresentable: Unrepresentable,
}

impl<'w, W: Writer> Entries<'w, W> {
    #[inline]
    pub(super) fn open(writer: &'w mut W, unrepresentable: Unrepresentable) -> Self {
        let dict = writer.open_dict(None);
        Self {
            writer,
            dict,
            unrepresentable,
        }
    }

    #[inline]
    pub(super) fn close(self) {
        self.writer.close(self.dict);
    }

    pub(super) fn publish(&mut self, options: &PublishOptions) -> Result<()> {
        self.flag("acknowledge", options.acknowledge);
        if !options.exclude_me {
            self.key("exclude_me").boolean(false);
        }
        self.disclose_me(options.disclose_me);
        self.flag("retain", options.retain);
        if let Some(milliseconds) = options.retain_ms {
            self.key("retain_ms").unsigned(milliseconds);
        }
        if let Some(receivers) = &options.receivers {
            self.sessions("exclude", receivers.exclude.as_deref());
            self.texts("exclude_authid", receivers.exclude_authid.as_deref());
            self.texts("exclude_authrole", receivers.exclude_authrole.as_deref());
            self.sessions("eligible", receivers.eligible.as_deref());
            self.texts("eligible_authid", receivers.eligible_authid.as_deref());
            self.texts("eligible_authrole", receivers.eligible_authrole.as_deref());
        }
        if let Some(sharding) = options.sharding.as_deref() {
            self.sharding(sharding);
        }
        self.passthru(options.passthru.as_deref())
    }

    pub(super) fn subscribe(&mut self, options: &SubscribeOptions) -> Result<()> {
        self.match_policy(options.match_policy);
        self.flag("get_retained", options.get_retained);
        if let Some(nkey) = options.nkey.as_deref() {
            self.key("nkey").text(nkey);
        }
        self.flag(ACKNOWLEDGED_DELIVERY, options.acknowledged_delivery);
        Ok(())
    }

    pub(super) fn event(&mut self, details: &EventDetails<'_>) -> Result<()> {
        self.optional_text("topic", details.topic.as_ref());
        if let Some(publisher) = &details.publisher {
            let keys = ["publisher", "publisher_authid", "publisher_authrole"];
            self.disclosed(keys, publisher);
        }
        self.flag("retained", details.retained);
        self.flag(ACKNOWLEDGED_DELIVERY, details.acknowledged_delivery);
        self.passthru(details.passthru.as_deref())
    }

    pub(super) fn call(&mut self, options: &CallOptions) -> Result<()> {
        self.timeout(options.timeout_ms);
        self.flag("receive_progress", options.receive_progress);
        self.flag("progress", options.progress);
        self.disclose_me(options.disclose_me);
        if let Some(sharding) = options.sharding.as_deref() {
            self.sharding(sharding);
        }
        self.passthru(options.passthru.as_deref())
    }

    fn sharding(&mut self, sharding: &Sharding) {
        if let Some(rkey) = &sharding.rkey {
            self.key("rkey").text(rkey);
        }
        if let Some(runmode) = sharding.runmode {
            self.key("runmode").text(runmode.name());
        }
    }

    pub(super) fn cancel(&mut self, options: &CancelOptions) -> Result<()> {
        self.key("mode").text(cancel_mode(options.mode));
        Ok(())
    }

    pub(super) fn result(&mut self, details: &ResultDetails<'_>) -> Result<()> {
        self.flag("progress", details.progress);
        if let Some(callee) = &details.callee {
            self.disclosed(["callee", "callee_authid", "callee_authrole"], callee);
        }
        self.passthru(details.passthru.as_deref())
    }

    pub(super) fn register(&mut self, options: &RegisterOptions) -> Result<()> {
        self.match_policy(options.match_policy);
        if options.invoke != InvocationPolicy::Single {
            self.key("invoke").text(options.invoke.name());
        }
        self.flag("forward_timeout", options.forward_timeout);
        if options.concurrency > 0 {
            self.key("concurrency").unsigned(options.concurrency.into());
        }
        self.flag("force_reregister", options.force_reregister);
        if let Some(nkey) = options.nkey.as_deref() {
            self.key("nkey").text(nkey);
        }
        Ok(())
    }

    pub(super) fn revoked(
        &mut self,
        (key, id): (&str, u64),
        reason: Option<&Cow<'_, str>>,
    ) -> Result<()> {
        self.key(key).unsigned(id);
        self.optional_text("reason", reason);
        Ok(())
    }

    pub(super) fn invocation(&mut self, details: &InvocationDetails<'_>) -> Result<()> {
        self.optional_text("procedure", details.procedure.as_ref());
        if let Some(caller) = &details.caller {
            self.disclosed(["caller", "caller_authid", "caller_authrole"], caller);
        }
        self.timeout(details.timeout_ms);
        self.flag("receive_progress", details.receive_progress);
        self.flag("progress", details.progress);
        self.passthru(details.passthru.as_deref())
    }

    pub(super) fn interrupt(&mut self, options: &InterruptOptions<'_>) -> Result<()> {
        if let Some(mode) = options.mode {
            self.key("mode").text(cancel_mode(mode));
        }
        self.optional_text("reason", options.reason.as_ref());
        Ok(())
    }

    pub(super) fn r#yield(&mut self, options: &YieldOptions) -> Result<()> {
        self.flag("progress", options.progress);
        self.passthru(options.passthru.as_deref())
    }

    /// Begins an entry, whose value the caller then writes.
    #[inline]
    fn key(&mut self, key: &str) -> &mut W {
        self.writer.element(&mut self.dict);
        self.writer.text(key);
        self.writer.separator();
        self.writer
    }

    #[inline]
    fn flag(&mut self, key: &str, flag: bool) {
        if flag {
            self.key(key).boolean(true);
        }
    }

    fn timeout(&mut self, timeout_ms: u64) {
        if timeout_ms > 0 {
            self.key("timeout").unsigned(timeout_ms);
        }
    }

    fn disclose_me(&mut self, disclose_me: Option<bool>) {
        if let Some(disclose_me) = disclose_me {
            self.key("disclose_me").boolean(disclose_me);
        }
    }

    fn match_policy(&mut self, policy: MatchPolicy) {
        match policy {
            MatchPolicy::Exact => (),
            MatchPolicy::Prefix => self.key("match").text("prefix"),
            MatchPolicy::Wildcard => self.key("match").text("wildcard"),
        }
    }

    fn optional_text(&mut self, key: &str, text: Option<&Cow<'_, str>>) {
        if let Some(text) = text {
            self.key(key).own_text(text);
        }
    }

    fn disclosed(&mut self, keys: [&str; 3], disclosed: &Disclosed<'_>) {
        self.key(keys[0]).unsigned(disclosed.session.0);
        self.key(keys[1]).own_text(&disclosed.authid);
        self.key(keys[2]).own_text(&disclosed.authrole);
    }

    fn sessions(&mut self, key: &str, sessions: Option<&[SessionId]>) {
        self.list(key, sessions, |writer, session| writer.unsigned(session.0));
    }

    fn texts(&mut self, key: &str, texts: Option<&[String]>) {
        self.list(key, texts, |writer, text| writer.text(text));
    }

    fn list<T>(&mut self, key: &str, elements: Option<&[T]>, write: impl Fn(&mut W, &T)) {
        let Some(elements) = elements else { return };
        let writer = self.key(key);
        let mut list = writer.open_list(Some(elements.len()));
        for element in elements {
            writer.element(&mut list);
            write(writer, element);
        }
        writer.close(list);
    }

    fn passthru(&mut self, passthru: Option<&Dict>) -> Result<()> {
        let Some(passthru) = passthru else {
            return Ok(());
        };
        let unrepresentable = self.unrepresentable;
        for (key, value) in passthru {
            value::write(self.key(key), value, unrepresentable)?;
        }
        Ok(())
    }
}

fn cancel_mode(mode: CancelMode) -> &'static str {
    match mode {
        CancelMode::Skip => "skip",
        CancelMode::Kill => "kill",
        CancelMode::KillNoWait => "killnowait",
    }
}
