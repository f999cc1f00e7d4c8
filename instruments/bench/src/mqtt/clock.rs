//! The due times of paced publications: a timer of the kernel, for one epoll with the sockets. Epoll's own waits have
//! whole milliseconds.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

pub(super) struct Clock {
    timer: OwnedFd,
    start_ns: u64,
    gap_ns: u64,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Clock {
    /// The first publication is due after one period from now.
    pub(super) fn start(rate: u64, now_ns: u64) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let gap_ns = SECOND_NS / rate.max(1);
        let start_ns = now_ns + gap_ns;
        let times = Itimerspec {
            it_interval: timespec(gap_ns),
            it_value: timespec(start_ns),
        };
        timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &times)?;
        Ok(Self {
            timer,
            start_ns,
            gap_ns,
        })
    }

    /// How many publications have become due since the last call.
    pub(super) fn due(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        match rustix::io::read(&self.timer, &mut count) {
            Ok(_) => Ok(u64::from_ne_bytes(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// When a publication is due, by its number from 0.
    pub(super) fn due_ns(&self, number: u64) -> u64 {
        self.start_ns + number * self.gap_ns
    }
}

impl AsFd for Clock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

fn timespec(nanoseconds: u64) -> Timespec {
    Timespec {
        tv_sec: (nanoseconds / SECOND_NS).cast_signed(),
        tv_nsec: (nanoseconds % SECOND_NS).cast_signed(),
    }
}
