package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
)

// exchanged are objects of every way in which the two servers store: protobuf, JSON, definitions and policies in an
// older version, several versions of a kind.
const exchanged = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: NAMEs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: NAMEs, singular: NAME, kind: NAME, listKind: NAMEList}
  conversion: {strategy: None}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: integer, default: 3}}}}}}
    additionalPrinterColumns: [{name: A, type: integer, jsonPath: .spec.a}]
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [none], apiVersions: [v1], operations: [CREATE], resources: [none]}]}
  reinvocationPolicy: Never
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: \"remove\", path: \"/x\"}]"}}]
---
apiVersion: v1
kind: Secret
metadata: {name: NAME, namespace: default}
stringData: {a: b}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: default}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: c, image: example.com/c, resources: {requests: {cpu: 100m}}, ports: [{containerPort: 80}]}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: NAME, namespace: default}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: NAME, namespace: default}
spec: {podSelector: {}, ingress: [{ports: [{port: http}]}]}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: NAME, namespace: default}
spec: {holderIdentity: me, renewTime: "2026-01-02T03:04:05.123456Z"}
`

// TestExchange has bowsprit and a real kube-apiserver (reference) work on one etcd: each serves what the other stores,
// so one can take the place of the other.
func TestExchange(t *testing.T) {
	if reference == "" {
		t.Skip("E2E_KUBE_APISERVER is not set")
	}
	etcd := startCluster(t, 1, nil)
	kube := startReference(t, etcd, withoutAccounts)
	apply := func(p *process, name string) {
		kubectl(t, p, bytes.ReplaceAll([]byte(exchanged), []byte("NAME"), []byte(name)), "apply", "-f", "-")
		kubectl(t, p, nil, "wait", "--for=condition=Established", "crd/"+name+"s.example.com")
		object := `{"apiVersion":"example.com/v2","kind":"` + name +
			`","metadata":{"name":"x","namespace":"default"},"spec":{"b":1}}`
		kubectl(t, p, []byte(object), "apply", "-f", "-")
	}
	apply(kube, "first")
	ours := startServer(t, "--data-dir="+t.TempDir(), "--etcd-servers="+etcd.endpoints())
	apply(ours, "second")
	for _, name := range []string{"first", "second"} {
		kubectl(t, kube, nil, "wait", "--for=condition=Established", "crd/"+name+"s.example.com")
		for _, kind := range []string{"crd", "secret", "deployment", "hpa", "networkpolicy", "lease",
			"mutatingadmissionpolicy", name + "s.v1.example.com", name + "s.v2.example.com"} {
			object := name
			switch kind {
			case "crd":
				object += "s.example.com"
			case name + "s.v1.example.com", name + "s.v2.example.com":
				object = "x"
			}
			read := func(p *process) (v any) {
				if err := json.Unmarshal(kubectl(t, p, nil, "get", kind, object, "-o", "json", "--show-managed-fields"),
					&v); err != nil {
					t.Fatal(err)
				}
				return v
			}
			if a, b := read(kube), read(ours); !reflect.DeepEqual(a, b) {
				x, _ := json.Marshal(a)
				y, _ := json.Marshal(b)
				t.Errorf("%s %s:\nkube-apiserver %s\nbowsprit       %s", kind, name, x, y)
			}
		}
	}
}

// kubectl runs the command against p and returns what it prints.
func kubectl(t *testing.T, p *process, in []byte, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(binaries, "kubectl"),
		append([]string{"--kubeconfig=" + p.kubeconfig, "--cache-dir=" + filepath.Join(t.TempDir(), "cache")},
			args...)...)
	cmd.Stdin = bytes.NewReader(in)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl %v: %v: %s", args, err, &errs)
	}
	return out
}
