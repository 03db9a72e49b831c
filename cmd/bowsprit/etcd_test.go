package main

import (
	"slices"
	"testing"
)

func TestHurriedIsWhoIsAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		set  string // in the environment
		want bool
	}{
		{nil, "", true},
		{[]string{"--data-dir=x", "--unsafe-no-fsync", "--listen-client-urls", "http://127.0.0.1:1"}, "", true},
		{[]string{"--data-dir", "initial-cluster"}, "", true},
		{[]string{"--initial-cluster", "a=http://127.0.0.1:1,b=http://127.0.0.1:2"}, "", false},
		{[]string{"--initial-cluster=a=http://127.0.0.1:1"}, "", false},
		{[]string{"-election-timeout=1000"}, "", false},
		{[]string{"--heartbeat-interval=100"}, "", false},
		{[]string{"--config-file=x"}, "", false},
		{[]string{"--discovery-srv=example.com"}, "", false},
		{[]string{"gateway", "start"}, "", false},
		{nil, "ETCD_INITIAL_CLUSTER", false},
		{nil, "ETCD_NAME", true},
	} {
		got := hurried(c.args, func(name string) (string, bool) { return "", name == c.set })
		if slices.Equal(got, c.args) == c.want {
			t.Errorf("%q with %s: %q", c.args, c.set, got)
		}
	}
}
