package batch

import (
	"sync"
	"time"
)

// dueLooks tracks the CronJobs that have changed since their last reconcile. After a change of only the schedule, a
// CronJob waits for the next time of the new schedule, and does not make up for a missed one. After any other change it
// is reconciled in full at once.
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

// take clears the record of a CronJob. If only its schedule has changed, it returns when; otherwise the zero time.
func (d *dueLooks) take(key string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.at[key]
	delete(d.at, key)
	return at
}
