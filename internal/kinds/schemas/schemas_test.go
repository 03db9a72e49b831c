package schemas

import (
	"strings"
	"testing"
)

// TestExpandedEnds expands every kind. A type inside itself ends after mostLevels.
func TestExpandedEnds(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(text) {
		id, schema, _ := strings.Cut(line, "\t")
		if !strings.Contains(schema, `"metadata":{`) || strings.HasSuffix(id, "List") {
			continue
		}
		if _, err := Expanded(id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	s, err := Expanded("io.k8s.api.scheduling.v1beta1.Workload")
	if err != nil {
		t.Fatal(err)
	}
	at, levels := s.Properties["spec"], 0
	for {
		groups, ok := at.Properties["compositePodGroupTemplates"]
		if !ok {
			break
		}
		levels++
		at = *groups.Items.Schema
	}
	if open := at.XPreserveUnknownFields; levels != mostLevels+1 || at.Type != "object" || open == nil || !*open {
		t.Errorf("%d levels, below them %s", levels, at.Type)
	}
}
