package manifest

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/admit/registration"
)

type (
	validatingPolicy  = admissionregistrationv1.ValidatingAdmissionPolicy
	validatingBinding = admissionregistrationv1.ValidatingAdmissionPolicyBinding
	mutatingPolicy    = admissionregistrationv1.MutatingAdmissionPolicy
	mutatingBinding   = admissionregistrationv1.MutatingAdmissionPolicyBinding
)

// ValidatingPolicy is a policy with its bindings, in the order of their names.
type ValidatingPolicy = bound[*validatingPolicy, *validatingBinding]

// MutatingPolicy is a policy with its bindings, in the order of their names.
type MutatingPolicy = bound[*mutatingPolicy, *mutatingBinding]

type bound[P, B any] struct {
	Policy   P
	Bindings []B
}

// ValidatingPolicies opens a folder of ValidatingAdmissionPolicies and their bindings.
func ValidatingPolicies(c Config) (*Source[ValidatingPolicy], error) {
	s, err := open(c, readValidatingPolicies)
	return opened(s, err, "policy", c.Folder)
}

// MutatingPolicies opens a folder of MutatingAdmissionPolicies and their bindings.
func MutatingPolicies(c Config) (*Source[MutatingPolicy], error) {
	s, err := open(c, readMutatingPolicies)
	return opened(s, err, "policy", c.Folder)
}

func readValidatingPolicies(documents []document) ([]ValidatingPolicy, error) {
	policies := collect(kind[*validatingPolicy]{
		name: "ValidatingAdmissionPolicy",
		items: func(obj runtime.Object) ([]*validatingPolicy, bool) {
			switch obj := obj.(type) {
			case *validatingPolicy:
				return []*validatingPolicy{obj}, true
			case *admissionregistrationv1.ValidatingAdmissionPolicyList:
				return pointers(obj.Items), true
			}
			return nil, false
		},
		defaults: registration.DefaultPolicy,
		check: func(p *validatingPolicy) field.ErrorList {
			return registration.CheckValidatingPolicy(p, nil, nil)
		},
		limits: func(p *validatingPolicy, _ string) error {
			return checkParamKind("ValidatingAdmissionPolicy", p.Name, p.Spec.ParamKind)
		},
	})
	bindings := collect(kind[*validatingBinding]{
		name: "ValidatingAdmissionPolicyBinding",
		items: func(obj runtime.Object) ([]*validatingBinding, bool) {
			switch obj := obj.(type) {
			case *validatingBinding:
				return []*validatingBinding{obj}, true
			case *admissionregistrationv1.ValidatingAdmissionPolicyBindingList:
				return pointers(obj.Items), true
			}
			return nil, false
		},
		defaults: registration.DefaultBinding,
		check:    registration.CheckValidatingBinding,
		limits: func(b *validatingBinding, _ string) error {
			return checkBinding(b.Name, b.Spec.PolicyName, b.Spec.ParamRef)
		},
	})
	return readPolicies(documents, policies, bindings,
		func(b *validatingBinding) string { return b.Spec.PolicyName })
}

func readMutatingPolicies(documents []document) ([]MutatingPolicy, error) {
	policies := collect(kind[*mutatingPolicy]{
		name: "MutatingAdmissionPolicy",
		items: func(obj runtime.Object) ([]*mutatingPolicy, bool) {
			switch obj := obj.(type) {
			case *mutatingPolicy:
				return []*mutatingPolicy{obj}, true
			case *admissionregistrationv1.MutatingAdmissionPolicyList:
				return pointers(obj.Items), true
			}
			return nil, false
		},
		defaults: registration.DefaultPolicy,
		check: func(p *mutatingPolicy) field.ErrorList {
			return registration.CheckMutatingPolicy(p, nil, nil)
		},
		limits: func(p *mutatingPolicy, _ string) error {
			return checkParamKind("MutatingAdmissionPolicy", p.Name, p.Spec.ParamKind)
		},
	})
	bindings := collect(kind[*mutatingBinding]{
		name: "MutatingAdmissionPolicyBinding",
		items: func(obj runtime.Object) ([]*mutatingBinding, bool) {
			switch obj := obj.(type) {
			case *mutatingBinding:
				return []*mutatingBinding{obj}, true
			case *admissionregistrationv1.MutatingAdmissionPolicyBindingList:
				return pointers(obj.Items), true
			}
			return nil, false
		},
		defaults: registration.DefaultBinding,
		check:    registration.CheckMutatingBinding,
		limits: func(b *mutatingBinding, _ string) error {
			return checkBinding(b.Name, b.Spec.PolicyName, b.Spec.ParamRef)
		},
	})
	return readPolicies(documents, policies, bindings, func(b *mutatingBinding) string { return b.Spec.PolicyName })
}

// readPolicies returns the policies of a folder with their bindings. policyOf returns the name of a binding's policy.
func readPolicies[P, B metav1.Object](
	documents []document, policies *objects[P], bindings *objects[B], policyOf func(B) string,
) ([]bound[P, B], error) {
	err := decodeAll(documents, func(obj runtime.Object, file string) (bool, error) {
		known, err := policies.add(obj, file)
		if !known && err == nil {
			known, err = bindings.add(obj, file)
		}
		return known, err
	})
	if err != nil {
		return nil, err
	}
	for _, b := range bindings.all {
		if _, ok := policies.files[policyOf(b)]; !ok {
			return nil, fmt.Errorf("binding %q references policy %q which does not exist in the manifest directory",
				b.GetName(), policyOf(b))
		}
	}
	byPolicy := map[string][]B{}
	for _, b := range bindings.sorted() {
		byPolicy[policyOf(b)] = append(byPolicy[policyOf(b)], b)
	}
	var all []bound[P, B]
	for _, p := range policies.sorted() {
		all = append(all, bound[P, B]{p, byPolicy[p.GetName()]})
	}
	return all, nil
}

// checkParamKind refuses parameters: they are objects that a client can change.
func checkParamKind(kind, name string, params *admissionregistrationv1.ParamKind) error {
	if params != nil {
		return fmt.Errorf("%s %q: spec.paramKind is not supported for static manifests", kind, name)
	}
	return nil
}

func checkBinding(name, policy string, params *admissionregistrationv1.ParamRef) error {
	switch {
	case policy == "":
		return fmt.Errorf("binding %q must reference a policy (spec.policyName)", name)
	case !strings.HasSuffix(policy, registration.ManifestSuffix):
		return fmt.Errorf("binding %q: spec.policyName %q must end with %q", name, policy, registration.ManifestSuffix)
	case params != nil:
		return fmt.Errorf("binding %q: spec.paramRef is not supported for static manifests", name)
	}
	return nil
}
