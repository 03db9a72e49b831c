package abac

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Load reads a file of policies: each line is a Policy as JSON, a comment that begins with #, or empty.
func Load(path string, log *slog.Logger) (Policies, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // read only: no error to report
	decoder, err := newDecoder()
	if err != nil {
		return nil, err
	}
	var (
		policies Policies
		old      int
	)
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if text := strings.TrimSpace(string(line)); text == "" || text[0] == '#' {
			continue
		}
		s, versioned, err := decode(decoder, line)
		if err != nil {
			return nil, fmt.Errorf("error reading policy file %s, line %d: %s: %w", path, n, line, err)
		}
		if !versioned {
			old++
		}
		policies = append(policies, s)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("error reading policy file %s: %w", path, err)
	}
	if old > 0 {
		log.Warn("a policy file has lines without apiVersion and kind; they are read as of version v0", "file", path,
			"lines", old)
	}
	return policies, nil
}

func decode(decoder runtime.Decoder, line []byte) (s spec, versioned bool, err error) {
	obj, _, err := decoder.Decode(line, nil, nil)
	if runtime.IsMissingVersion(err) || runtime.IsMissingKind(err) || runtime.IsNotRegisteredError(err) {
		p := &policyV0{}
		if err := runtime.DecodeInto(decoder, line, p); err != nil {
			return spec{}, false, err
		}
		return p.spec(), false, nil
	}
	if err != nil {
		return spec{}, true, err
	}
	p, ok := obj.(*policy)
	if !ok {
		return spec{}, true, fmt.Errorf("unrecognized object: %#v", obj)
	}
	return p.spec, true, nil
}

// policy is the common form of all versions.
type policy struct {
	metav1.TypeMeta
	spec spec
}

// policyV0 is the oldest form, in which empty fields match everything.
type policyV0 struct {
	metav1.TypeMeta `json:",inline"`
	User            string `json:"user,omitempty"`
	Group           string `json:"group,omitempty"`
	Readonly        bool   `json:"readonly,omitempty"`
	Resource        string `json:"resource,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
}

// policyV1beta1 is the form of the documentation.
type policyV1beta1 struct {
	metav1.TypeMeta `json:",inline"`
	Spec            struct {
		User            string `json:"user,omitempty"`
		Group           string `json:"group,omitempty"`
		Readonly        bool   `json:"readonly,omitempty"`
		APIGroup        string `json:"apiGroup,omitempty"`
		Resource        string `json:"resource,omitempty"`
		Namespace       string `json:"namespace,omitempty"`
		NonResourcePath string `json:"nonResourcePath,omitempty"`
	} `json:"spec"`
}

// DeepCopyObject implements runtime.Object.
func (p *policy) DeepCopyObject() runtime.Object { q := *p; return &q }

// DeepCopyObject implements runtime.Object.
func (p *policyV0) DeepCopyObject() runtime.Object { q := *p; return &q }

// DeepCopyObject implements runtime.Object.
func (p *policyV1beta1) DeepCopyObject() runtime.Object { q := *p; return &q }

func (p *policyV0) spec() spec {
	s := spec{
		User: p.User, Group: p.Group, Readonly: p.Readonly, Resource: p.Resource, Namespace: p.Namespace, APIGroup: "*",
	}
	if p.User == "" && p.Group == "" {
		s.Group = user.AllAuthenticated
	}
	if p.Namespace == "" && p.Resource == "" {
		s.NonResourcePath = "*"
	}
	if p.Namespace == "" {
		s.Namespace = "*"
	}
	if p.Resource == "" {
		s.Resource = "*"
	}
	return s.authenticated()
}

// authenticated limits a policy for all users to authenticated users.
func (s spec) authenticated() spec {
	if s.User == "*" || s.Group == "*" {
		s.User, s.Group = "", user.AllAuthenticated
	}
	return s
}

// newDecoder returns a decoder for policies of all versions. It is a scheme of the library, so that errors have
// Kubernetes' texts.
func newDecoder() (runtime.Decoder, error) {
	const group, kind = "abac.authorization.kubernetes.io", "Policy"
	scheme := runtime.NewScheme()
	for version, of := range map[string]runtime.Object{
		runtime.APIVersionInternal: &policy{}, "v0": &policyV0{}, "v1beta1": &policyV1beta1{},
	} {
		scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, of)
	}
	err := errors.Join(
		scheme.AddConversionFunc((*policyV0)(nil), (*policy)(nil), func(a, b any, _ conversion.Scope) error {
			b.(*policy).spec = a.(*policyV0).spec()
			return nil
		}),
		scheme.AddConversionFunc((*policyV1beta1)(nil), (*policy)(nil), func(a, b any, _ conversion.Scope) error {
			b.(*policy).spec = spec(a.(*policyV1beta1).Spec).authenticated()
			return nil
		}),
	)
	return serializer.NewCodecFactory(scheme).UniversalDecoder(), err
}
