package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// exchanged has objects of every storage format of the two servers: protobuf, JSON, definitions and policies in an
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

// TestExchange runs bowsprit and a real kube-apiserver (reference) on one etcd. Each serves the other's objects, so one
// can replace the other.
func TestExchange(t *testing.T) {
	exchange(t)
}

// encryption names resources of every storage format of the two servers, each with another provider.
const encryption = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers: [{secretbox: {keys: [{name: box, secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=}]}}]
- resources: [deployments.apps, customresourcedefinitions.apiextensions.k8s.io]
  providers: [{aescbc: {keys: [{name: cbc, secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=}]}}]
- resources: ['*.example.com', '*.autoscaling', leases.coordination.k8s.io]
  providers: [{aesgcm: {keys: [{name: gcm, secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=}]}}]
`

// TestExchangeEncrypted is TestExchange with encryption: each server decrypts the other's objects.
func TestExchangeEncrypted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	if err := os.WriteFile(file, []byte(encryption), 0o600); err != nil {
		t.Fatal(err)
	}
	etcd := exchange(t, "--encryption-provider-config="+file)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.members[0].client}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for key, want := range map[string]string{
		"secrets/default/NAME": "k8s:enc:secretbox:v1:box:", "deployments/default/NAME": "k8s:enc:aescbc:v1:cbc:",
		"leases/default/NAME": "k8s:enc:aesgcm:v1:gcm:", "horizontalpodautoscalers/default/NAME": "k8s:enc:aesgcm:v1:gcm:",
		"example.com/NAMEs/default/x":                                      "k8s:enc:aesgcm:v1:gcm:",
		"apiextensions.k8s.io/customresourcedefinitions/NAMEs.example.com": "k8s:enc:aescbc:v1:cbc:",
	} {
		for _, name := range []string{"first", "second"} {
			key := "/registry/" + strings.ReplaceAll(key, "NAME", name)
			r, err := client.Get(t.Context(), key)
			if err != nil || len(r.Kvs) != 1 || !strings.HasPrefix(string(r.Kvs[0].Value), want) {
				t.Errorf("%s does not begin with %s: %v", key, want, err)
			}
		}
	}
}

// exchange lets both servers store objects in one etcd, and compares their responses.
func exchange(t *testing.T, flags ...string) *cluster {
	t.Helper()
	if reference == "" {
		t.Skip("E2E_KUBE_APISERVER is not set")
	}
	etcd := startCluster(t, 1, nil)
	kube := startReference(t, etcd, append([]string{withoutAccounts}, flags...)...)
	apply := func(p *process, name string) {
		kubectl(t, p, bytes.ReplaceAll([]byte(exchanged), []byte("NAME"), []byte(name)), "apply", "-f", "-")
		kubectl(t, p, nil, "wait", "--for=condition=Established", "crd/"+name+"s.example.com")
		object := `{"apiVersion":"example.com/v2","kind":"` + name +
			`","metadata":{"name":"x","namespace":"default"},"spec":{"b":1}}`
		kubectl(t, p, []byte(object), "apply", "-f", "-")
	}
	apply(kube, "first")
	ours := startServer(t,
		append([]string{"--data-dir=" + t.TempDir(), "--etcd-servers=" + etcd.endpoints()}, flags...)...)
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
	return etcd
}

// kubectl runs the command against p and returns its output.
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
