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

// As kube-apiserver, the server has what Kubernetes has, and more only if it is named.
func TestLikeKubernetes(t *testing.T) {
	t.Parallel()
	const definitions, migrations = "apiextensions.k8s.io/v1beta1", "storagemigration.k8s.io/v1beta1"
	tests := []struct{ given, want map[string]string }{
		{nil, map[string]string{definitions: "false", migrations: "false"}},
		{map[string]string{"api/all": "true"},
			map[string]string{"api/all": "true", definitions: "false", migrations: "false"}},
		{map[string]string{definitions: "true"}, map[string]string{definitions: "true", migrations: "false"}},
	}
	for _, test := range tests {
		if got := likeKubernetes(test.given); !maps.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.given, got, test.want)
		}
	}
}
