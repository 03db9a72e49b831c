package convert

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// benchPod is a pod as the server stores it after its creation.
const benchPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":"2026-11-01T10:00:00Z","generation":1,` +
	`"labels":{"app":"web","pod-template-hash":"5d9c5f7b6c"},"managedFields":[{"apiVersion":"v1",` +
	`"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},` +
	`"f:ownerReferences":{".":{},"k:{\"uid\":\"3f1b5a0e-6f3c-4f4e-9d1b-1a2b3c4d5e6f\"}":{}}},"f:spec":{` +
	`"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{` +
	`".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},` +
	`"f:resources":{".":{},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},` +
	`"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{},` +
	`"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}},"manager":"kube-controller-manager",` +
	`"operation":"Update","time":"2026-11-01T10:00:00Z"}],"name":"web-5d9c5f7b6c-abcde","namespace":"default",` +
	`"ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"ReplicaSet",` +
	`"name":"web-5d9c5f7b6c","uid":"3f1b5a0e-6f3c-4f4e-9d1b-1a2b3c4d5e6f"}],` +
	`"uid":"0b0b5a0e-6f3c-4f4e-9d1b-1a2b3c4d5e6f"},"spec":{"containers":[{"image":"nginx:1.29",` +
	`"imagePullPolicy":"IfNotPresent","name":"web","ports":[{"containerPort":80,"protocol":"TCP"}],"resources":{` +
	`"requests":{"cpu":"100m","memory":"64Mi"}},"terminationMessagePath":"/dev/termination-log",` +
	`"terminationMessagePolicy":"File","volumeMounts":[{` +
	`"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-x2x4z",` +
	`"readOnly":true}]}],"dnsPolicy":"ClusterFirst","enableServiceLinks":true,` +
	`"preemptionPolicy":"PreemptLowerPriority","priority":0,"restartPolicy":"Always",` +
	`"schedulerName":"default-scheduler","securityContext":{},"serviceAccount":"default",` +
	`"serviceAccountName":"default","terminationGracePeriodSeconds":30,"tolerations":[{"effect":"NoExecute",` +
	`"key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300},{"effect":"NoExecute",` +
	`"key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":300}],"volumes":[{` +
	`"name":"kube-api-access-x2x4z","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{` +
	`"expirationSeconds":3607,"path":"token"}},{"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],` +
	`"name":"kube-root-ca.crt"}},{"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1",` +
	`"fieldPath":"metadata.namespace"},"path":"namespace"}]}}]}}]},"status":{"phase":"Pending",` +
	`"qosClass":"Burstable"}}`

func podStoring(media string) (*Storing, *catalog.Resource) {
	v := &catalog.Version{Name: "v1", New: func() any { return &corev1.Pod{} }}
	r := &catalog.Resource{Kind: "Pod", Plural: "pods", Prefix: "pods", Versions: []*catalog.Version{v}, Storage: v}
	return NewStoring([]*catalog.Resource{r}, StoringOptions{Media: media}), r
}

func BenchmarkEncode(b *testing.B) {
	for _, media := range []string{codec.JSON, codec.Protobuf, CompressedJSON} {
		b.Run(media, func(b *testing.B) {
			s, r := podStoring(media)
			raw := []byte(benchPod)
			b.ReportAllocs()
			for b.Loop() {
				out, _ := s.Encode(r, raw)
				b.ReportMetric(float64(len(out)), "stored-B")
			}
		})
	}
}

// BenchmarkDecode decodes another server's values, up to an entry of the view.
func BenchmarkDecode(b *testing.B) {
	for _, media := range []string{codec.JSON, codec.Protobuf, CompressedJSON} {
		b.Run(media, func(b *testing.B) {
			s, r := podStoring(media)
			value, _ := s.Encode(r, []byte(benchPod))
			s.recent = nil
			b.ReportAllocs()
			for b.Loop() {
				got, err := s.Decode("pods", value)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := watchcache.NewEntry("default/web", got.JSON, 7); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
