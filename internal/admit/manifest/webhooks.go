package manifest

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bowsprit/bowsprit/internal/admit/registration"
)

type (
	validatingWebhooks = admissionregistrationv1.ValidatingWebhookConfiguration
	mutatingWebhooks   = admissionregistrationv1.MutatingWebhookConfiguration
)

// Webhooks is a webhook configuration.
type Webhooks struct {
	Name  string
	Hooks []registration.Hook
}

// ValidatingWebhooks opens a folder of ValidatingWebhookConfigurations.
func ValidatingWebhooks(c Config) (*Source[Webhooks], error) {
	s, err := open(c, readValidatingWebhooks)
	return opened(s, err, "webhook", c.Folder)
}

// MutatingWebhooks opens a folder of MutatingWebhookConfigurations.
func MutatingWebhooks(c Config) (*Source[Webhooks], error) {
	s, err := open(c, readMutatingWebhooks)
	return opened(s, err, "webhook", c.Folder)
}

func readValidatingWebhooks(documents []document) (all []Webhooks, err error) {
	found := collect(kind[*validatingWebhooks]{
		name: "ValidatingWebhookConfiguration",
		items: func(obj runtime.Object) ([]*validatingWebhooks, bool) {
			switch obj := obj.(type) {
			case *validatingWebhooks:
				return []*validatingWebhooks{obj}, true
			case *admissionregistrationv1.ValidatingWebhookConfigurationList:
				return pointers(obj.Items), true
			}
			return nil, false
		},
		defaults: func(obj map[string]any) { registration.DefaultWebhooks(obj, false) },
		check: func(c *validatingWebhooks) field.ErrorList {
			return registration.CheckValidatingWebhooks(c, nil, nil)
		},
		limits: func(c *validatingWebhooks, file string) error {
			return checkClients(registration.ValidatingHooks(c), c.Name, file)
		},
	})
	err = decodeAll(documents, found.add)
	for _, c := range found.sorted() {
		all = append(all, Webhooks{c.Name, registration.ValidatingHooks(c)})
	}
	return all, err
}

func readMutatingWebhooks(documents []document) (all []Webhooks, err error) {
	found := collect(kind[*mutatingWebhooks]{
		name: "MutatingWebhookConfiguration",
		items: func(obj runtime.Object) ([]*mutatingWebhooks, bool) {
			switch obj := obj.(type) {
			case *mutatingWebhooks:
				return []*mutatingWebhooks{obj}, true
			case *admissionregistrationv1.MutatingWebhookConfigurationList:
				return pointers(obj.Items), true
			}
			return nil, false
		},
		defaults: func(obj map[string]any) { registration.DefaultWebhooks(obj, true) },
		check: func(c *mutatingWebhooks) field.ErrorList {
			return registration.CheckMutatingWebhooks(c, nil, nil)
		},
		limits: func(c *mutatingWebhooks, file string) error {
			return checkClients(registration.MutatingHooks(c), c.Name, file)
		},
	})
	err = decodeAll(documents, found.add)
	for _, c := range found.sorted() {
		all = append(all, Webhooks{c.Name, registration.MutatingHooks(c)})
	}
	return all, err
}

// checkClients requires a URL for each webhook: a Service is an object that a client can change.
func checkClients(hooks []registration.Hook, configuration, file string) error {
	for _, h := range hooks {
		switch {
		case h.ClientConfig.Service != nil:
			return fmt.Errorf(
				"webhook %q in %q (file %q): clientConfig.service is not supported for static manifests; use clientConfig.url instead",
				h.Name, configuration, file)
		case ptr.Deref(h.ClientConfig.URL, "") == "":
			return fmt.Errorf("webhook %q in %q (file %q): clientConfig.url is required for static manifests", h.Name,
				configuration, file)
		}
	}
	return nil
}
