package main

import (
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/bowsprit/bowsprit"
)

// What flags say of limits: 0 is none, which is less than zero in the configuration, whose zero is the default.
func TestLimitFlags(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		want bowsprit.Config
	}{
		{nil, bowsprit.Config{RequestTimeout: time.Minute}},
		{
			[]string{"--request-timeout=5s", "--min-request-timeout=60", "--max-requests-inflight=7",
				"--max-mutating-requests-inflight=8", "--event-ttl=2h"},
			bowsprit.Config{
				RequestTimeout: 5 * time.Second, MinRequestTimeout: time.Minute, MaxRequestsInFlight: 7,
				MaxMutatingRequestsInFlight: 8, EventTTL: 2 * time.Hour,
			},
		},
		{
			[]string{"--max-requests-inflight=0", "--max-mutating-requests-inflight=0", "--event-ttl=0"},
			bowsprit.Config{
				RequestTimeout: time.Minute, MaxRequestsInFlight: -1, MaxMutatingRequestsInFlight: -1, EventTTL: -1,
			},
		},
	}
	for _, test := range tests {
		var c bowsprit.Config
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		bindLimitFlags(f, &c)
		if err := f.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		if c.RequestTimeout != test.want.RequestTimeout || c.MinRequestTimeout != test.want.MinRequestTimeout ||
			c.MaxRequestsInFlight != test.want.MaxRequestsInFlight ||
			c.MaxMutatingRequestsInFlight != test.want.MaxMutatingRequestsInFlight || c.EventTTL != test.want.EventTTL {
			t.Errorf("%v: %+v", test.args, c)
		}
		if *c.NotReadyTolerationSeconds != 300 || *c.UnreachableTolerationSeconds != 300 {
			t.Errorf("tolerations of %d and %d seconds", *c.NotReadyTolerationSeconds, *c.UnreachableTolerationSeconds)
		}
	}
	for _, bad := range []string{"--max-requests-inflight=many", "--event-ttl=soon", "--min-request-timeout=1m"} {
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		bindLimitFlags(f, &bowsprit.Config{})
		if f.Parse([]string{bad}) == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
