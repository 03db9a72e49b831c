package cluster

import "time"

// longest bounds the durations that objects can set: the sum of two of them does not overflow time.Duration.
const longest = 100 * 365 * 24 * time.Hour

// Seconds returns the time of a field in seconds, 100 years at most.
func Seconds(n int64) time.Duration {
	most := int64(longest / time.Second)
	return time.Duration(max(-most, min(n, most))) * time.Second
}
