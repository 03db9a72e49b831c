package cluster

import "time"

// longest is the longest time that an object can ask for here: sums of two of them are durations.
const longest = 100 * 365 * 24 * time.Hour

// Seconds returns the time of a field in seconds, 100 years at most.
func Seconds(n int64) time.Duration {
	most := int64(longest / time.Second)
	return time.Duration(max(-most, min(n, most))) * time.Second
}
