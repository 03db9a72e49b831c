package rest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRank checks that lists of FlowSchemas are ordered by name, and tables in the order in which requests try them.
func TestRank(t *testing.T) {
	t.Parallel()
	s := start(t)
	const flows = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
	for name, precedence := range map[string]int{"a": 900, "b": 7, "c": 7} {
		code, answer := perform(t, s, "POST", flows,
			fmt.Sprintf(
				`{"metadata":{"name":%q},"spec":{"matchingPrecedence":%d,"priorityLevelConfiguration":{"name":"p"}}}`,
				name, precedence))
		if code != 201 {
			t.Fatal(answer)
		}
	}
	names := func(accept string) (out []string) {
		body, _ := read(t, s, "GET "+flows, accept)
		var got struct {
			Items []metav1.PartialObjectMetadata
			Rows  []struct{ Object metav1.PartialObjectMetadata }
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		for _, i := range got.Items {
			out = append(out, i.Name)
		}
		for _, r := range got.Rows {
			out = append(out, r.Object.Name)
		}
		return out
	}
	if got := names("application/json"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("listed: %v", got)
	}
	if got := names("application/json;as=Table;g=meta.k8s.io;v=v1"); !slices.Equal(got, []string{"b", "c", "a"}) {
		t.Errorf("printed: %v", got)
	}
}
