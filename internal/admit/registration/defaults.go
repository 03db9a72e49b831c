package registration

import "github.com/bowsprit/bowsprit/internal/api/catalog"

// Defaults work on decoded JSON, in place. Malformed values are left alone: decoding reports them.

type object = map[string]any

// DefaultWebhooks sets the defaults of a MutatingWebhookConfiguration or ValidatingWebhookConfiguration.
func DefaultWebhooks(obj map[string]any, mutating bool) {
	for _, hook := range catalog.Objects(obj["webhooks"]) {
		set(hook, "failurePolicy", "Fail")
		defaultMatch(hook)
		set(hook, "timeoutSeconds", int64(10))
		if mutating {
			set(hook, "reinvocationPolicy", "Never")
		}
		defaultScopes(hook["rules"])
		client, _ := hook["clientConfig"].(object)
		if service, ok := client["service"].(object); ok {
			set(service, "port", int64(443))
		}
	}
}

// DefaultPolicy fills in a ValidatingAdmissionPolicy or MutatingAdmissionPolicy.
func DefaultPolicy(obj map[string]any) {
	if spec, ok := obj["spec"].(object); ok {
		set(spec, "failurePolicy", "Fail")
		defaultResources(spec["matchConstraints"])
	}
}

// DefaultBinding fills in a ValidatingAdmissionPolicyBinding or MutatingAdmissionPolicyBinding.
func DefaultBinding(obj map[string]any) {
	if spec, ok := obj["spec"].(object); ok {
		defaultResources(spec["matchResources"])
	}
}

func defaultResources(v any) {
	m, ok := v.(object)
	if !ok {
		return
	}
	defaultMatch(m)
	defaultScopes(m["resourceRules"])
	defaultScopes(m["excludeResourceRules"])
}

func defaultMatch(m object) {
	set(m, "matchPolicy", "Equivalent")
	if m["namespaceSelector"] == nil {
		m["namespaceSelector"] = object{}
	}
	if m["objectSelector"] == nil {
		m["objectSelector"] = object{}
	}
}

func defaultScopes(rules any) {
	for _, rule := range catalog.Objects(rules) {
		set(rule, "scope", "*")
	}
}

func set(m object, key string, v any) {
	if m[key] == nil {
		m[key] = v
	}
}
