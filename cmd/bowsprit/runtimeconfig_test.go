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
	for _, test := range []struct{ given, want config }{
		{nil, config{oldDefinitions: "false"}},
		{config{"api/all": "true"}, config{"api/all": "true", oldDefinitions: "false"}},
		{config{"api/beta": ""}, config{"api/beta": "", oldDefinitions: "false"}},
		{config{oldDefinitions: "true"}, config{oldDefinitions: "true"}},
	} {
		if got := likeKubernetes(test.given); !maps.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.given, got, test.want)
		}
	}
}
