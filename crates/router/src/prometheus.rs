//! Metrics under RabbitMQ's names on a transport: HTTP in, the text out.

use std::io;
use std::sync::Arc;

use crosstie_mgmt::prometheus::{Scrape, Scraped};
use crosstie_mgmt::{Api, Head};
use crosstie_realms::http::Http;
use crosstie_site::gzip::Gzip;
use crosstie_site::{Answering, Asked, Service, answer};
use hyper::Response;

use crate::management_api::{Held, headers, response};
use crate::router::Router;

/// The metrics as a service.
struct Prometheus {
    api: Arc<Api>,
}

impl Router {
    /// The HTTP server of a transport of metrics.
    pub(crate) fn prometheus_http(&self) -> io::Result<Arc<dyn Http>> {
        let api = self.broker_api()?;
        Ok(self.site_of(Box::new(Prometheus { api })))
    }
}

impl Service for Prometheus {
    fn answer(&self, asked: Asked) -> Answering<'_> {
        Box::pin(async move { self.respond(&asked) })
    }
}

impl Prometheus {
    fn respond(&self, asked: &Asked) -> Response<answer::Body> {
        let request = &asked.request;
        let head = Head {
            method: request.method().as_str().to_owned(),
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            headers: headers(request.headers()),
        };
        let gzip = Gzip::of(request.method(), request.headers(), &asked.connection);
        let answer = match self.api.scrape(&head) {
            Scraped::Refused(answer) => answer,
            Scraped::Text(scrape) => Scrape::answer(OnAccount {
                held: Held::of(&asked.connection, 0),
                scrape,
            }),
        };
        response(answer, gzip.as_ref())
    }
}

/// The figures that are read before they are written, on the account of their connection.
struct OnAccount {
    held: Held,
    scrape: Box<Scrape>,
}

impl Iterator for OnAccount {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let part = self.scrape.next();
        self.held.set(self.scrape.bytes());
        part
    }
}
