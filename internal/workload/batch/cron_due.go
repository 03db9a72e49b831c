package batch

import (
	"sync"
	"time"
)

// dueLooks has the keys of CronJobs that have changed since they were looked at, and how: one of which only the
// schedule has changed waits for the next time of the new schedule, and does not make up for one that had passed
// before. If anything else has happened meanwhile, there is a whole look at once, as there would be without the change.
type dueLooks struct {
	mu sync.Mutex
	// at is when the schedule has changed last, zero if a look is due at once.
	at map[string]time.Time
}

// atOnce notes that a CronJob is to be looked at now.
func (d *dueLooks) atOnce(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note(key, time.Time{})
}

// reschedule notes that a CronJob has got another schedule.
func (d *dueLooks) reschedule(key string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, ok := d.at[key]; !ok || !at.IsZero() {
		d.note(key, now)
	}
}

// note is called with the lock.
func (d *dueLooks) note(key string, at time.Time) {
	if d.at == nil {
		d.at = map[string]time.Time{}
	}
	d.at[key] = at
}

// take forgets what was noted of a CronJob, and returns when its schedule has changed if that is all that has happened,
// zero otherwise.
func (d *dueLooks) take(key string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.at[key]
	delete(d.at, key)
	return at
}
