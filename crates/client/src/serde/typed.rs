//! Calls and procedures with types of the application.

use thiserror::Error;

use super::arguments::{DeserializeArguments, SerializeArguments};
use super::error::SerdeError;
use crate::arguments::Arguments;
use crate::call::CallOptions;
use crate::client::Client;
use crate::error::{ApplicationError, CallError, RegisterError};
use crate::registration::{RegisterOptions, Registration};

/// The reason why a typed call has no result.
#[non_exhaustive]
#[derive(Clone, Debug, Error)]
pub enum TypedCallError {
    /// The arguments are not serializable; nothing was sent.
    #[error("arguments of the call: {0}")]
    Arguments(SerdeError),
    /// The call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The callee's result is of another type.
    #[error("result of the call: {0}")]
    Result(SerdeError),
}

impl Client {
    /// Calls a procedure with arguments and a result of the application's own types; see [the module](crate::serde).
    ///
    /// ```
    /// use crosstie_client::Client;
    ///
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Point {
    ///     x: f64,
    ///     y: f64,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = crosstie_node::test_node()?;
    /// # let url = node.url();
    /// let client = Client::connect(url).await?;
    /// client
    ///     .register_typed("com.example.mirror", async |point: Point| {
    ///         Ok(Point { x: -point.x, ..point })
    ///     })
    ///     .await?;
    /// let mirrored: Point = client
    ///     .call_typed("com.example.mirror", Point { x: 1.0, y: 2.0 })
    ///     .await?;
    /// assert_eq!((mirrored.x, mirrored.y), (-1.0, 2.0));
    /// # client.leave().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call_typed<R: DeserializeArguments>(
        &self,
        procedure: &str,
        arguments: impl SerializeArguments,
    ) -> Result<R, TypedCallError> {
        let options = CallOptions::default();
        self.call_typed_with(procedure, arguments, options).await
    }

    /// As [`call_typed`](Self::call_typed), with options.
    pub async fn call_typed_with<R: DeserializeArguments>(
        &self,
        procedure: &str,
        arguments: impl SerializeArguments,
        options: CallOptions,
    ) -> Result<R, TypedCallError> {
        let arguments = arguments.serialize_arguments();
        let arguments = arguments.map_err(TypedCallError::Arguments)?;
        let result = self.call_with(procedure, arguments, options).await?;
        result.deserialize().map_err(TypedCallError::Result)
    }

    /// Registers a procedure whose handler takes and returns the application's own types; see
    /// [the module](crate::serde).
    ///
    /// Callers with arguments of another type get `wamp.error.invalid_argument` with the reason.
    ///
    /// ```
    /// use crosstie_client::{ApplicationError, CallError, Client};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = crosstie_node::test_node()?;
    /// # let url = node.url();
    /// let client = Client::connect(url).await?;
    /// client
    ///     .register_typed("com.example.divide", async |(a, b): (i64, i64)| {
    ///         let quotient = a.checked_div(b);
    ///         quotient.ok_or_else(|| ApplicationError::new("com.example.error.division", ()))
    ///     })
    ///     .await?;
    /// let quotient: i64 = client.call_typed("com.example.divide", (7, 2)).await?;
    /// assert_eq!(quotient, 3);
    ///
    /// let error = client.call("com.example.divide", ("seven", 2)).await.unwrap_err();
    /// assert!(matches!(error, CallError::Application(error) if error.uri == "wamp.error.invalid_argument"));
    /// # client.leave().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn register_typed<A, R, H, F>(
        &self,
        procedure: &str,
        handler: H,
    ) -> Result<Registration, RegisterError>
    where
        A: DeserializeArguments + Send + 'static,
        R: SerializeArguments + Send + 'static,
        H: Fn(A) -> F + Send + Sync + 'static,
        F: Future<Output = Result<R, ApplicationError>> + Send + 'static,
    {
        let options = RegisterOptions::default();
        self.register_typed_with(procedure, options, handler).await
    }

    /// As [`register_typed`](Self::register_typed), with options.
    pub async fn register_typed_with<A, R, H, F>(
        &self,
        procedure: &str,
        options: RegisterOptions,
        handler: H,
    ) -> Result<Registration, RegisterError>
    where
        A: DeserializeArguments + Send + 'static,
        R: SerializeArguments + Send + 'static,
        H: Fn(A) -> F + Send + Sync + 'static,
        F: Future<Output = Result<R, ApplicationError>> + Send + 'static,
    {
        self.register_with(procedure, options, move |invocation| {
            let answer = invocation.arguments.deserialize().map(&handler);
            async move {
                let answer =
                    answer.map_err(|error| refused("wamp.error.invalid_argument", &error))?;
                let result = answer.await?;
                Arguments::serialize(&result)
                    .map_err(|error| refused("wamp.error.invalid_payload", &error))
            }
        })
        .await
    }
}

fn refused(uri: &str, error: &SerdeError) -> ApplicationError {
    ApplicationError::new(uri, (error.to_string(),))
}
