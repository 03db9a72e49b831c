package main

import (
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/bowsprit/bowsprit"
)

// TestLimitFlags checks that a limit of 0 on the command line means no limit. In the configuration a negative value
// means that, and zero means the default.
func TestLimitFlags(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		want bowsprit.Config
	}{
		{nil, bowsprit.Config{Limits: bowsprit.LimitsConfig{RequestTimeout: time.Minute}}},
		{
			[]string{"--request-timeout=5s", "--min-request-timeout=60", "--max-requests-inflight=7",
				"--max-mutating-requests-inflight=8", "--event-ttl=2h"},
			bowsprit.Config{
				Limits: bowsprit.LimitsConfig{RequestTimeout: 5 * time.Second, MinRequestTimeout: time.Minute,
					MaxRequestsInFlight:         7,
					MaxMutatingRequestsInFlight: 8, EventTTL: 2 * time.Hour},
			},
		},
		{
			[]string{"--max-requests-inflight=0", "--max-mutating-requests-inflight=0", "--event-ttl=0"},
			bowsprit.Config{
				Limits: bowsprit.LimitsConfig{
					RequestTimeout: time.Minute, MaxRequestsInFlight: -1, MaxMutatingRequestsInFlight: -1, EventTTL: -1,
				},
			},
		},
	}
	for _, test := range tests {
		var c bowsprit.Config
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		bindSettings(f, &c, bowsprit.Serve, nil)
		if err := f.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		if c.Limits.RequestTimeout != test.want.Limits.RequestTimeout ||
			c.Limits.MinRequestTimeout != test.want.Limits.MinRequestTimeout ||
			c.Limits.MaxRequestsInFlight != test.want.Limits.MaxRequestsInFlight ||
			c.Limits.MaxMutatingRequestsInFlight != test.want.Limits.MaxMutatingRequestsInFlight ||
			c.Limits.EventTTL != test.want.Limits.EventTTL {
			t.Errorf("%v: %+v", test.args, c)
		}
		if *c.Limits.NotReadyTolerationSeconds != 300 || *c.Limits.UnreachableTolerationSeconds != 300 {
			t.Errorf("tolerations of %d and %d seconds", *c.Limits.NotReadyTolerationSeconds,
				*c.Limits.UnreachableTolerationSeconds)
		}
	}
	for _, bad := range []string{"--max-requests-inflight=many", "--event-ttl=soon", "--min-request-timeout=1m"} {
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		bindSettings(f, &bowsprit.Config{}, bowsprit.Serve, nil)
		if f.Parse([]string{bad}) == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
