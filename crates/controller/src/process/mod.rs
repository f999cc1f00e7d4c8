//! Child processes: started, listened to, ended with all that they started.
