package part

import "time"

// MachineClock is the clock of the machine.
type MachineClock struct{}

// Now returns the time.
func (MachineClock) Now() time.Time { return time.Now() }

// AfterFunc is time.AfterFunc.
func (MachineClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}
