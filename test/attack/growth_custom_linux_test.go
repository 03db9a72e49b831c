package attack

import (
	"fmt"
	"maps"
	"slices"
)

// setup holds the collection and the body of each object that the server has before: a limit range, a quota, a policy
// for all kinds with its binding, and a definition with every kind of list.
const setup = `/api/v1/namespaces/default/limitranges
{apiVersion: v1, kind: LimitRange, metadata: {name: a}, spec: {limits: [{type: Container, default: {cpu: "1"}, max: {memory: 1Gi}}, {type: PersistentVolumeClaim, max: {storage: 1Ti}}]}}
---
/api/v1/namespaces/default/resourcequotas
{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {pods: "1000", services: "1000", limits.cpu: 100k, requests.storage: 100Ti, count/secrets: "1000"}}}
---
/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: a}
spec:
  matchConstraints: {resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: ["*"]}]}
  variables: [{name: labels, expression: "has(object.metadata.labels) ? object.metadata.labels : {}"}]
  validations: [{expression: "variables.labels.all(k, k != 'forbidden')"}]
---
/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: a}, spec: {policyName: a, validationActions: [Deny, Audit]}}
---
/apis/apiextensions.k8s.io/v1/customresourcedefinitions
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lots.growth.example.com}
spec:
  group: growth.example.com
  scope: Namespaced
  names: {plural: lots, kind: Lot}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: List, type: string, jsonPath: ".spec.objects[?(@.name=='a7')].value"}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: &spec
            type: object
            properties:
              texts: {type: array, maxItems: 20000, items: {type: string, maxLength: 20, enum: [a, b, c]}}
              objects:
                type: array
                maxItems: 20000
                items: {type: object, properties: {name: {type: string, default: x, maxLength: 20}, value: {type: integer}, more: {type: object, default: {a: b}, additionalProperties: {type: string}}}}
                x-kubernetes-validations: [{rule: "self.all(e, !has(e.value) || e.value >= 0)"}]
              set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              numbers: {type: array, x-kubernetes-list-type: set, items: {type: integer}}
              one: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, value: {type: integer, minimum: 0}}, x-kubernetes-validations: [{rule: "self == oldSelf || true"}]}}
              two: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name, value], items: {type: object, required: [name], properties: {name: {type: string}, value: {type: integer, default: 7}}}}
              nested: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, value: {type: integer}, inner: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}}
              map: {type: object, additionalProperties: {type: object, properties: {name: {type: string}, value: {type: integer}}}}
              atomic: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: object, x-kubernetes-preserve-unknown-fields: true}}
              free: {x-kubernetes-preserve-unknown-fields: true}
              embedded: {type: array, items: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}
              pruned: {type: array, items: {type: object, properties: {a: {type: string}}}}
              either: {type: array, items: {type: object, properties: {name: {type: string}, value: {type: integer}}, oneOf: [{required: [name]}, {required: [value]}]}}
              invalid: {type: array, items: {type: string, maxLength: 1}}
          status: *spec
`

// custom returns the lists of custom objects. Elements have a name, and a value that differs.
func custom() (out []subject) {
	named := func(i int) any { return map[string]any{"name": fmt.Sprint("a", i), "value": int64(i)} }
	text := func(i int) any { return fmt.Sprint("a", i) }
	lists := map[string]func(i int) any{
		"texts": func(i int) any { return string(rune('a' + i%3)) }, "objects": named, "set": text,
		"numbers": func(i int) any { return int64(i) }, "one": named, "two": named,
		"nested": func(i int) any { return map[string]any{"name": fmt.Sprint("a", i), "inner": []any{"a", "b"}} },
		"free":   named,
		"embedded": func(i int) any {
			meta := map[string]any{"name": fmt.Sprint("a", i)}
			return map[string]any{"apiVersion": "v1", "kind": "A", "metadata": meta}
		},
		"pruned":  named,
		"either":  func(i int) any { return map[string]any{"name": fmt.Sprint("a", i)} },
		"invalid": text,
	}
	for _, field := range slices.Sorted(maps.Keys(lists)) {
		element := lists[field]
		out = append(out, lot(field, func(n int) any {
			list := make([]any, n)
			for i := range list {
				list[i] = element(i)
			}
			return list
		}))
	}
	for _, field := range []string{"map", "atomic"} {
		out = append(out, lot(field, func(n int) any {
			object := make(map[string]any, n)
			for i := range n {
				object[fmt.Sprint("a", i)] = named(i)
			}
			return object
		}))
	}
	return out
}

// lot returns a custom object with a value in a field of the spec and the same in the status.
func lot(field string, value func(n int) any) subject {
	return subject{
		name: "custom " + field, collection: "/apis/growth.example.com/v1/namespaces/default/lots", status: true,
		object: func(n int) map[string]any {
			return map[string]any{
				"apiVersion": "growth.example.com/v1", "kind": "Lot",
				"metadata": map[string]any{"name": "growing", "namespace": "default"},
				"spec":     map[string]any{field: value(n)}, "status": map[string]any{field: value(n)},
			}
		},
		reverse: func(obj map[string]any) {
			reverse(obj, []string{"spec", field})
			reverse(obj, []string{"status", field})
		},
	}
}
