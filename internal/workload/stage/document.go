package stage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

// document is a Stage as written. The names are kwok's.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec   spec            `json:"spec"`
	Status json.RawMessage `json:"status"`
}

type spec struct {
	ResourceRef struct {
		APIGroup string `json:"apiGroup"`
		Kind     string `json:"kind"`
	} `json:"resourceRef"`
	Selector           *selectorSpec `json:"selector"`
	Weight             int64         `json:"weight"`
	WeightFrom         *expression   `json:"weightFrom"`
	Delay              *delaySpec    `json:"delay"`
	Next               *nextSpec     `json:"next"`
	ImmediateNextStage *bool         `json:"immediateNextStage"`
	Steps              []stepSpec    `json:"steps"`
}

type selectorSpec struct {
	MatchLabels      map[string]string `json:"matchLabels"`
	MatchAnnotations map[string]string `json:"matchAnnotations"`
	MatchExpressions []requirement     `json:"matchExpressions"`
}

// requirement is an expression of a selector: CEL, jq, or jq in the older form.
type requirement struct {
	CEL *source      `json:"cel"`
	JQ  *requirement `json:"jq"`

	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

type source struct {
	Expression string `json:"expression"`
}

// expression is the source of a value: CEL, jq, or jq in the older form.
type expression struct {
	CEL            *source `json:"cel"`
	JQ             *source `json:"jq"`
	ExpressionFrom string  `json:"expressionFrom"`
}

type delaySpec struct {
	DurationMilliseconds       *int64      `json:"durationMilliseconds"`
	DurationFrom               *expression `json:"durationFrom"`
	JitterDurationMilliseconds *int64      `json:"jitterDurationMilliseconds"`
	JitterDurationFrom         *expression `json:"jitterDurationFrom"`
}

type stepSpec struct {
	Patch      *patchSpec      `json:"patch"`
	Event      *Event          `json:"event"`
	Finalizers *finalizersSpec `json:"finalizers"`
	Delete     bool            `json:"delete"`
	Apply      *patchSpec      `json:"apply"`
}

type patchSpec struct {
	Subresource   string   `json:"subresource"`
	Root          string   `json:"root"`
	Template      string   `json:"template"`
	Type          *string  `json:"type"`
	Impersonation *Another `json:"impersonation"`
}

// Another is the user to impersonate.
type Another struct {
	Username string `json:"username"`
}

// Event is an event that a Stage records.
type Event struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type finalizersSpec struct {
	Add    []finalizer `json:"add"`
	Remove []finalizer `json:"remove"`
	Empty  bool        `json:"empty"`
}

type finalizer struct {
	Value string `json:"value"`
}

// nextSpec is the older form of steps.
type nextSpec struct {
	Event             *Event          `json:"event"`
	Finalizers        *finalizersSpec `json:"finalizers"`
	Delete            bool            `json:"delete"`
	Patches           []patchSpec     `json:"patches"`
	StatusTemplate    string          `json:"statusTemplate"`
	StatusSubresource *string         `json:"statusSubresource"`
	StatusPatchAs     *Another        `json:"statusPatchAs"`
}

// steps converts the older form: an event, finalizers, patches and a deletion, in this order.
func (n *nextSpec) steps() (out []stepSpec) {
	if n.Event != nil {
		out = append(out, stepSpec{Event: n.Event})
	}
	if n.Finalizers != nil {
		out = append(out, stepSpec{Finalizers: n.Finalizers})
	}
	for i := range n.Patches {
		out = append(out, stepSpec{Patch: &n.Patches[i]})
	}
	if len(n.Patches) == 0 && n.StatusTemplate != "" {
		p := &patchSpec{
			Subresource: "status", Root: "status", Template: n.StatusTemplate, Impersonation: n.StatusPatchAs,
		}
		if n.StatusSubresource != nil {
			p.Subresource = *n.StatusSubresource
		}
		out = append(out, stepSpec{Patch: p})
	}
	if n.Delete {
		out = append(out, stepSpec{Delete: true})
	}
	return out
}

// Parse reads a Stage, as JSON. A field that no Stage has is an error, but in the metadata and the status.
func Parse(data []byte) (*Stage, error) {
	d := &document{}
	unknown, err := kjson.UnmarshalStrict(data, d)
	if err != nil {
		return nil, err
	}
	unknown = outsideMetadata(unknown)
	if d.APIVersion != Group+"/"+Version || d.Kind != Kind {
		return nil, fmt.Errorf("it is a %s of %s, not a %s of %s/%s", d.Kind, d.APIVersion, Kind, Group, Version)
	}
	s, err := compile(d)
	if err := errors.Join(append(unknown, err)...); err != nil {
		return nil, err
	}
	return s, nil
}

// outsideMetadata returns the errors about fields outside metadata: only the metadata fields in use are declared.
func outsideMetadata(errs []error) (out []error) {
	for _, err := range errs {
		if !bytes.HasPrefix([]byte(err.Error()), []byte(`unknown field "metadata.`)) {
			out = append(out, err)
		}
	}
	return out
}

// The types of patches, by the names that Stages have for them.
var patchTypes = map[string]types.PatchType{
	"json": types.JSONPatchType, "merge": types.MergePatchType, "strategic": types.StrategicMergePatchType,
	"apply": types.ApplyPatchType,
}
