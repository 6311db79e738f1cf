// Command mpi runs the controller of MPIJobs alone: the command that the module publishes also elects a leader, and
// listens on a fixed port of every address.
package main

import (
	"context"
	"flag"
	"os/signal"
	"syscall"

	mpijobs "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned"
	mpischeme "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned/scheme"
	mpiinformers "github.com/kubeflow/mpi-operator/pkg/client/informers/externalversions"
	"github.com/kubeflow/mpi-operator/pkg/controller"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog"
	podgroups "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "whose rights the controller has")
	gangs := flag.String("gang-scheduling", "", "the scheduler of its pods, which then name a PodGroup")
	flag.Parse()
	if err := run(*kubeconfig, *gangs); err != nil {
		klog.Fatal(err)
	}
}

func run(kubeconfig, gangs string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 1000, 2000
	if err := mpischeme.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	client, jobs, groups := kubernetes.NewForConfigOrDie(config), mpijobs.NewForConfigOrDie(config), podgroups.NewForConfigOrDie(config)
	all, own := informers.NewSharedInformerFactory(client, 0), mpiinformers.NewSharedInformerFactory(jobs, 0)
	core := all.Core().V1()
	found, err := controller.NewMPIJobController(
		client, jobs, nil, groups,
		core.ConfigMaps(), core.Secrets(), core.Services(), all.Batch().V1().Jobs(), core.Pods(),
		all.Scheduling().V1().PriorityClasses(), own.Kubeflow().V2beta1().MPIJobs(), "", gangs)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	all.Start(ctx.Done())
	own.Start(ctx.Done())
	if found.PodGroupCtrl != nil {
		found.PodGroupCtrl.StartInformerFactory(ctx.Done())
	}
	return found.Run(2, ctx.Done())
}
