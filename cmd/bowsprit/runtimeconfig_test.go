package main

import (
	"maps"
	"testing"
)

func TestRuntimeConfig(t *testing.T) {
	t.Parallel()
	var c runtimeConfig
	for _, text := range []string{"api/all=true, apps/v1=false", "foo", "apps/v1=true,,batch/v1="} {
		if err := c.Set(text); err != nil {
			t.Error(err)
		}
	}
	if want := "api/all=true,apps/v1=true,batch/v1=,foo="; c.String() != want {
		t.Errorf("%s, want %s", c.String(), want)
	}
}

// TestLikeKubernetes checks that the server has the versions of kube-apiserver, and more only if the configuration
// names them.
func TestLikeKubernetes(t *testing.T) {
	t.Parallel()
	type config = map[string]string
	tests := []struct {
		given    config
		migrator bool
		want     config
	}{
		{nil, false, config{oldDefinitions: "false", migrations: "false"}},
		{nil, true, config{oldDefinitions: "false", migrations: "false"}},
		{config{"api/all": "true"}, false, config{"api/all": "true", oldDefinitions: "false", migrations: "false"}},
		{config{"api/all": "true"}, true, config{"api/all": "true", oldDefinitions: "false"}},
		{config{"api/beta": ""}, true, config{"api/beta": "", oldDefinitions: "false"}},
		{config{"api/all": "false"}, true, config{"api/all": "false", oldDefinitions: "false", migrations: "false"}},
		{config{oldDefinitions: "true"}, false, config{oldDefinitions: "true", migrations: "false"}},
	}
	for _, test := range tests {
		if got := likeKubernetes(test.given, test.migrator); !maps.Equal(got, test.want) {
			t.Errorf("%v, %v: %v, want %v", test.given, test.migrator, got, test.want)
		}
	}
}
