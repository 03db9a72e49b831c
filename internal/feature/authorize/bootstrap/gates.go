package bootstrap

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// gated holds the additions of Kubernetes features that are off by default, one object a line, with the name of the
// feature gate. The rules of a role that the policy contains are added to it.
//
//go:embed gates.jsonl
var gated string

// policyWith returns the policy with the additions of the given enabled features. test/oracle-builtins compares it with
// Kubernetes' own for each of them.
func policyWith(features []string) ([]string, error) {
	all := lines(policy)
	if len(features) == 0 {
		return all, nil
	}
	at := map[string]int{}
	for i, line := range all {
		obj, err := decodeLine(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		at[keyOf(obj)] = i
	}
	for _, line := range lines(gated) {
		var addition struct {
			Gate   string
			Object json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &addition); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		if !slices.Contains(features, addition.Gate) {
			continue
		}
		obj, err := decodeLine(string(addition.Object))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		i, there := at[keyOf(obj)]
		if !there {
			at[keyOf(obj)] = len(all)
			all = append(all, string(addition.Object))
			continue
		}
		base, err := decodeLine(all[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", all[i], err)
		}
		rules, _ := base["rules"].([]any)
		more, _ := obj["rules"].([]any)
		base["rules"] = slices.Concat(rules, more)
		all[i] = string(codec.AppendJSON(nil, base))
	}
	return all, nil
}

func keyOf(obj object.Object) string {
	meta := object.Map(obj, "metadata")
	return object.String(obj, "kind") + " " + object.String(meta, "namespace") + "/" + object.String(meta, "name")
}
