//! What the connections of a transport share: opened before its listener accepts any.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crosstie_broker::AmqpEndpoint;
use crosstie_broker::splice::Cluster;
use crosstie_config::{self as model, TransportKind};
use crosstie_front::certificate::Certificate;
use crosstie_front::listen::{Listening, Terms};
use crosstie_front::serve::Endpoint;
use crosstie_realms::endpoints::Endpoints;
use crosstie_realms::entrance::Entrance;
use crosstie_realms::http::Http;
use crosstie_site::pages::Pages;
use crosstie_site::services;
use crosstie_site::site::Site;
use crosstie_transport::ConnectionLimits;

use crate::conversing::{Conversing, Opened};
use crate::mqtt_homes::MqttHomes;
use crate::router::Router;
use crate::status_page::Told;

impl Router {
    /// Opens what a transport's connections share.
    pub(crate) fn endpoint(
        &self,
        transport: &model::Transport,
        cluster: Option<Cluster>,
        earlier: &[Conversing],
    ) -> io::Result<Opened> {
        let certificate = |protocols| {
            let directory = &self.options.directory;
            let state = &self.state;
            state.open_certificate(&transport.id, &transport.endpoint, directory, protocols)
        };
        match &transport.kind {
            TransportKind::Amqp(options) => {
                let no_broker = || io::Error::other("the worker's AMQP has not been started");
                let broker = self.state.amqp().ok_or_else(no_broker)?;
                let endpoint = Arc::new(AmqpEndpoint::new(options.clone(), broker, cluster));
                let limits = Arc::new(endpoint.limits(&self.state.bounds.limits));
                let timeout = options.handshake_timeout;
                let certificate = certificate(&[])?;
                let tls = certificate.as_ref();
                let conversing = Conversing {
                    listening: self.listening(transport, timeout, limits, tls, earlier),
                    entrance: None,
                };
                Ok(Opened {
                    conversing,
                    endpoint,
                    nodelay: true,
                    certificate,
                })
            }
            TransportKind::AmqpManagement(_) | TransportKind::AmqpPrometheus => {
                self.broker_pages(transport, earlier)
            }
            kind => {
                let realms = &self.state.realms;
                let former = earlier.last().and_then(|former| former.entrance.as_deref());
                let endpoints = Endpoints::of(kind, realms, &self.options.directory, former)?;
                let nodelay = endpoints.nodelay();
                let timeout = endpoints.handshake_timeout();
                let timeout = timeout.unwrap_or(self.state.bounds.handshake_timeout);
                let http = self.http(transport)?;
                let is_http2_spoken = http.as_ref().is_some_and(|http| http.speaks_http2());
                let protocols = if is_http2_spoken { HTTP } else { &[] };
                let limits = Arc::clone(&self.state.bounds.limits);
                let certificate = certificate(protocols)?;
                let tls = certificate.as_ref();
                let listening = self.listening(transport, timeout, limits, tls, earlier);
                let kept = Arc::clone(&listening);
                let server = Some(Arc::new(MqttHomes::of(&self.state)) as _);
                let entrance = Entrance::new(realms, kept, transport, endpoints, http, server);
                let entrance = Arc::new(entrance);
                let endpoint = self.spoken(&transport.kind, &entrance);
                let conversing = Conversing {
                    listening,
                    entrance: Some(Arc::clone(&entrance)),
                };
                Ok(Opened {
                    conversing,
                    endpoint,
                    nodelay,
                    certificate,
                })
            }
        }
    }

    /// The endpoint of connections that lead to realms: MQTT alone, or the one that tells protocols apart.
    fn spoken(&self, kind: &TransportKind, entrance: &Arc<Entrance>) -> Arc<dyn Endpoint> {
        let (spaces, fleets) = (&self.state.spaces, &self.state.fleets);
        let of_realms = entrance.mqtt_endpoints();
        of_realms
            .filter(|endpoint| endpoint.options.vhost.is_none())
            .for_each(|endpoint| spaces.open(endpoint));
        match (kind, &entrance.mqtt) {
            (TransportKind::Mqtt(_), Some(mqtt)) if mqtt.options.vhost.is_some() => {
                Arc::new(fleets.listener(entrance, mqtt))
            }
            (TransportKind::Mqtt(_), Some(mqtt)) => Arc::new(spaces.listener(entrance, mqtt)),
            _ => Arc::clone(entrance) as _,
        }
    }

    /// A transport whose connections all lead to one HTTP server, of the management API or of the metrics.
    fn broker_pages(
        &self,
        transport: &model::Transport,
        earlier: &[Conversing],
    ) -> io::Result<Opened> {
        let http = match &transport.kind {
            TransportKind::AmqpManagement(options) => self.management_http(options)?,
            _ => self.prometheus_http()?,
        };
        let (state, directory) = (&self.state, &self.options.directory);
        let (id, endpoint) = (&transport.id, &transport.endpoint);
        let certificate = state.open_certificate(id, endpoint, directory, HTTP)?;
        let (bounds, tls) = (&state.bounds, certificate.as_ref());
        let limits = Arc::clone(&bounds.limits);
        let timeout = bounds.handshake_timeout;
        let listening = self.listening(transport, timeout, limits, tls, earlier);
        let kept = Arc::clone(&listening);
        let entrance = Entrance::of_http(&state.realms, kept, &transport.allowed_hosts, http);
        let entrance = Arc::new(entrance);
        let conversing = Conversing {
            listening,
            entrance: Some(Arc::clone(&entrance)),
        };
        Ok(Opened {
            conversing,
            endpoint: entrance,
            nodelay: true,
            certificate,
        })
    }

    fn listening(
        &self,
        transport: &model::Transport,
        handshake_timeout: Duration,
        limits: Arc<ConnectionLimits>,
        certificate: Option<&Arc<Certificate>>,
        earlier: &[Conversing],
    ) -> Arc<Listening> {
        let earlier = earlier.iter().map(|former| Arc::clone(&former.listening));
        let terms = Terms {
            handshake_timeout,
            tls: certificate.map(|own| own.presented()),
            proxies: transport.endpoint.proxy_protocol().cloned(),
            limits,
            connections_max: transport.connections_max,
            connections_per_second_max: transport.limits.connections_per_second_max,
            earlier: earlier.collect(),
        };
        Listening::new(&self.state.bounds, &self.state.watch, terms)
    }

    /// The server of a transport's HTTP requests, if it has web services or pages.
    fn http(&self, transport: &model::Transport) -> io::Result<Option<Arc<dyn Http>>> {
        let web = web_of(&transport.kind);
        if web.is_none() && transport.pages.is_empty() {
            return Ok(None);
        }
        let told = Told::new(&self.state, vec![Arc::clone(&self.state)]);
        let pages = Pages::new(&transport.pages, told, self.state.page_connections_max);
        let site = match web {
            Some(web) => {
                let directory = &self.options.directory;
                services::site(web, pages, &self.state.grounds, directory)?
            }
            None => Site::of_pages(pages),
        };
        Ok(Some(Arc::new(site)))
    }
}

/// The ALPN protocols of a listener with web services.
const HTTP: &[&[u8]] = &[b"h2", b"http/1.1"];

/// The web services of a transport.
fn web_of(kind: &TransportKind) -> Option<&model::Web> {
    match kind {
        TransportKind::Web(web) => Some(web),
        TransportKind::Universal { web, .. } => web.as_ref(),
        _ => None,
    }
}
