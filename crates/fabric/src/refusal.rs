//! Reasons why a frame is rejected.

crosstie_collections::named! {
    /// The fault of a message from the engine, by the label of its metric.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Refusal {
        /// Not a frame.
        Frame = "frame",
        /// A version that this node does not accept, or a node that accepts none of this one's.
        Version = "version",
        /// An unknown kind.
        Kind = "kind",
        /// A field is missing or malformed.
        Field = "field",
        /// An event that is not a PUBLISH, or not on the subject of its topic.
        Event = "event",
        /// A pair's frame without a valid message of its kind.
        Crossing = "crossing",
        /// The maximum number of nodes is reached.
        Neighbours = "neighbours_max",
    }
}
