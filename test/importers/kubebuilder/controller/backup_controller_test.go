package controller

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("Backup", func() {
	It("becomes done", func() {
		backup := NewBackup()
		backup.SetNamespace("default")
		backup.SetName("nightly")
		Expect(k8sClient.Create(ctx, backup)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(backup), backup)).To(Succeed())
			phase, _, _ := unstructured.NestedString(backup.Object, "status", "phase")
			g.Expect(phase).To(Equal("Done"))
		}, "30s", "10ms").Should(Succeed())
	})

	It("keeps at least one copy", func() {
		backup := NewBackup()
		backup.SetNamespace("default")
		backup.SetName("none")
		Expect(unstructured.SetNestedField(backup.Object, int64(0), "spec", "keep")).To(Succeed())
		Expect(k8sClient.Create(ctx, backup)).To(MatchError(ContainSubstring("keep at least one copy")))
	})

	It("goes with its namespace", func() { // with envtest's binaries the namespace would stay
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
		Expect(k8sClient.Create(ctx, namespace)).To(Succeed())
		backup := NewBackup()
		backup.SetNamespace("team")
		backup.SetName("weekly")
		Expect(k8sClient.Create(ctx, backup)).To(Succeed())
		Expect(k8sClient.Delete(ctx, namespace)).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(k8sClient.Get(ctx, client.ObjectKeyFromObject(namespace), namespace))
		}, "30s", "10ms").Should(BeTrue())
	})
})
