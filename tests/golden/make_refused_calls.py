"""Calls that TensorFlow 1.15 refuses: when (building or running), with which class and text.

Run with TensorFlow 1.15: ``python make_refused_calls.py > refused_calls.json``.
"""

from __future__ import annotations

import json
from typing import Any

STRIDES = ("[2,1,1,1]", "[1,1,1,2]")
#: Expressions of ``tf``, ``np``, ``P`` (a placeholder) and ``C`` (ones of a shape).
CALLS = [
    *(
        f"tf.nn.conv2d({x},{w},{s},'SAME')"
        for x, w in (("P()", "P()"), ("X", "W"))
        for s in STRIDES
    ),
    *(f"tf.nn.conv2d(X,W,[1,1,1,1],'SAME',dilations={s})" for s in STRIDES),
    *(f"tf.nn.{f}(P(),[1,1,1,1],[2,1,1,1],'SAME')" for f in ("max_pool", "avg_pool")),
    *(f"tf.nn.{f}(X,[2,1,1,1],[1,1,1,1],'SAME')" for f in ("max_pool", "avg_pool")),
    "tf.nn.max_pool_with_argmax(X,[1,2,2,2],[1,1,1,2],'SAME')",
    "tf.nn.max_pool(X,[1,1,1,3],[1,1,1,3],'SAME')",
    "tf.nn.max_pool(X,[1,1,1,2],[1,1,1,1],'SAME')",
    "tf.nn.max_pool(X,[1,2,2,2],[1,1,1,2],'SAME')",
    *(f"tf.nn.depthwise_conv2d_native(X,W,{s},'SAME')" for s in STRIDES),
    *(f"tf.nn.conv2d_backprop_input([2,8,8,4],W,X,{s},'SAME')" for s in STRIDES),
    *(f"tf.nn.conv2d_backprop_filter(X,[3,3,4,4],X,{s},'SAME')" for s in STRIDES),
    *(f"tf.image.extract_image_patches(X,[1,2,2,1],{s},[1,1,1,1],'SAME')" for s in STRIDES),
    "tf.nn.conv3d(P(),P(),[2,1,1,1,1],'SAME')",
    "tf.nn.max_pool3d(C([2,8,8,8,4]),[1]*5,[1,1,1,1,2],'SAME')",
    "tf.nn.avg_pool3d(C([2,8,8,8,4]),[1]*5,[2,1,1,1,1],'SAME')",
    "tf.nn.top_k(P(),-1)",
    "tf.confusion_matrix([1,0],[1,1],2,weights=[1,2,3])",
    "tf.confusion_matrix([1,0],[1,1],2,weights=3)",
    "tf.confusion_matrix([1,0],[1,1],2,weights=[[1],[2]])",
    "tf.metrics.mean_iou(C([4]),C([4]),2,weights=C([3]))",
    "tf.image.decode_jpeg(tf.placeholder(tf.string),channels=2)",
    "tf.as_string(P(),shortest=True,scientific=True)",
    "tf.norm(tf.constant([[0.,1.],[2.,3.]]),axis=[[1],[2]])",
    "tf.convert_to_tensor(tf.TensorShape([2147483648]),dtype=tf.int32)",
    "tf.placeholder(tf.float32,[10,10],name='p')",
    "tf.placeholder(tf.float64,name='p')",
    "tf.placeholder(tf.half,name='p')",
    "tf.reduce_join([['a'],['b']],tf.placeholder_with_default([1,1],None))",
    "tf.nn.ctc_beam_search_decoder(C([2,1,4]),[2],beam_width=2,top_paths=3)",
    "tf.broadcast_to([1,2],tf.placeholder_with_default([2,1],None))",
    "tf.get_variable('v',[4],tf.int32,use_resource=True).assign_add(1)",
    "tf.data.Dataset.from_tensors((np.ones(7),np.ones(8))).apply(tf.data.experimental.unbatch())",
    "tf.create_partitioned_variables([10,43],[11,1],tf.zeros([10,43]))",
    "tf.losses.sparse_softmax_cross_entropy([[0,1],[2,3]],tf.zeros([4,4]))",
    "tf.debugging.assert_shapes([(C([2]),())])",
    "tf.debugging.assert_shapes([(C([2,3]),('N',...))])",
    "tf.debugging.assert_shapes([(C([2,3]),'ND'),(C([4]),'N')])",
    "tf.debugging.assert_shapes([(C([2,3]),(3,'D'))])",
    "tf.debugging.assert_shapes([(C([2,3]),3)])",
    "tf.assert_rank(C([2]),np.array([1,2],np.int32))",
    # numbers and vectors whose shape is known only when the call runs
    "tf.concat([C([2,3]),C([2,3])],D([0]))",
    "tf.gather(C([2,3,4]),[[1]],axis=D([0]))",
    "tf.one_hot([1],3,on_value=D([1.]),off_value=D(0.))",
    "tf.one_hot([1],3,on_value=D(1.),off_value=D([0.]))",
    "tf.one_hot([1],D([3]))",
    "tf.split(C([2,6]),3,axis=D([1]))",
    "tf.split(C([2,6]),[1,2,3],axis=D([1]))",
    "tf.raw_ops.SplitV(value=C([2,6]),size_splits=D([[1,5]]),axis=1,num_split=2)",
    "tf.raw_ops.PadV2(input=C([2,3]),paddings=[[0,1],[1,2]],constant_values=D([1.]))",
    "tf.image.crop_and_resize(C([1,5,6,1]),C([2,4]),[0,0],D([3,3,3,3]))",
    "tf.image.crop_and_resize(C([1,5,6,1]),D([[0.,0.,1.,1.]]),D([0,0]),[3,3])",
    "tf.raw_ops.CropAndResizeGradImage(grads=C([2,3,4,3]),boxes=C([2,4]),box_ind=[0,0],"
    "image_size=[],T=tf.float32)",
    "tf.raw_ops.StridedSliceGrad(shape=[4,5],begin=[0,0],end=D([2,4,1,1]),strides=[1,1],dy=D([1.]))",
    "tf.raw_ops.StridedSliceGrad(shape=[4,5],begin=[0,0],end=[2,4],strides=[1,1],dy=D([1.]))",
    "tf.edit_distance(tf.SparseTensor(D(I([3,2])),D([1,2]),[3,2]),tf.SparseTensor([[0,0]],[1],[3,2]))",
    # ranks that are known only when the call runs, and those that are known before
    "tf.raw_ops.MatMul(a=C([3,2]),b=D([1.,2.]))",
    "tf.raw_ops.MatMul(a=D([[[1.,2.]]]),b=tf.get_variable('w',[2,2]))",
    "tf.raw_ops.InvertPermutation(x=D([[1,0]]))",
    "tf.raw_ops.StridedSlice(input=X,begin=D([0,0]),end=D([1]),strides=D([1]))",
    "tf.raw_ops.StridedSlice(input=X,begin=[0,0],end=[1],strides=[1])",
    "tf.raw_ops.SoftsignGrad(gradients=D([1.,2.]),features=D([[1.,2.]]))",
    "tf.raw_ops.LeakyReluGrad(gradients=D([1.,2.]),features=D([[1.,2.]]))",
    "tf.raw_ops.ReluGrad(gradients=D([1.,2.]),features=D(1.))",
    "tf.raw_ops.TanhGrad(y=C([2]),dy=D([[1.,2.]]))",
    "tf.raw_ops.SqrtGrad(y=C([1,2]),dy=C([3]))",
    "tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=D([0.,0.]),labels=C([2,2]))[0]",
    "tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=D([[[0.,0.]]]),labels=D([[[0.,1.]]]))[0]",
    "tf.raw_ops.SparseReduceMax(input_indices=I([1,2]),input_values=[1.],input_shape=[2,2],"
    "reduction_axes=D([[1]]))",
    "tf.raw_ops.SparseReorder(input_indices=I([1,2]),input_values=[1.],input_shape=D(I([0])))[1]",
    "tf.raw_ops.SparseDenseCwiseMul(sp_indices=I([1,2]),sp_values=D([[1.]]),sp_shape=[2,2],"
    "dense=C([2,2]))",
    "tf.raw_ops.SparseConcat(indices=[I([1,2]),I([1,1])],values=[[1.],[1.]],shapes=[[2,2],[2,2]],"
    "concat_dim=1)[1]",
    "tf.raw_ops.Split(axis=[1],value=D([1.]),num_split=3)[0]",
    "tf.raw_ops.Roll(input=X,shift=[1,1],axis=[0])",
    "tf.raw_ops.Reverse(tensor=X,dims=[True])",
    "tf.raw_ops.GatherV2(params=X,indices=[0],axis=[1])",
    "tf.raw_ops.Einsum(inputs=[D([1.]),C([1,3,4])],equation='ij,jk->ik')",
    "tf.raw_ops.TopK(input=X,k=1)[0]",
    "tf.raw_ops.FusedBatchNorm(x=X,scale=C([4]),offset=C([4]),mean=D([[0.]]),variance=D([0.]))[0]",
    "tf.raw_ops.RaggedRange(starts=D([1,2,3]),limits=[4,5,6],deltas=C([2],tf.int32))[1]",
    "tf.nn.ctc_greedy_decoder(C([6,3,4]),D([1,1]))[1]",
    "tf.raw_ops.ApproximateEqual(x=D(1.),y=C([2]))",
    "tf.raw_ops.Fill(dims=D(I([])),value=1)",
    "tf.raw_ops.SpaceToBatch(input=X,paddings=[[[0,0],[0,0]]],block_size=2)",
    "tf.raw_ops.SparseFillEmptyRows(indices=I([2,2]),values=1.,dense_shape=[2,2],default_value=0.)[1]",
    "tf.raw_ops.AvgPoolGrad(orig_input_shape=D([2,8,8,4]),grad=D([1.]),ksize=[1,1,1,1],"
    "strides=[1,1,1,1],padding='SAME')",
    "tf.raw_ops.ParseSingleExample(serialized=D(['']),dense_defaults=[],num_sparse=1,sparse_keys=['a'],"
    "dense_keys=[],sparse_types=[tf.int64],dense_shapes=[]).sparse_values[0]",
    "tf.audio.decode_wav(D(['']))[0]",
    # parameters of tf.raw_ops have the names of the Python functions, not those of graphs
    "tf.raw_ops.ExpandDims(input=[1],dim=0)",
    "tf.raw_ops.Sum(input=[1],reduction_indices=0)",
    "tf.raw_ops.Sum(input=[1])",
    "tf.raw_ops.Sum(input=[1],axis=0)",
    "tf.raw_ops.Any(input=[True],axis=0)",
    "tf.raw_ops.Where(condition=[True])",
    "tf.raw_ops.Select(condition=[True],x=[1],y=[2])",
    "tf.raw_ops.Squeeze(input=[[1]],axis=[0])",
    "tf.raw_ops.Split(axis=0,value=[1,2],num_split=2)",
    # found by random calls and a walk through the API
    *(
        f"tf.sparse.transpose(tf.SparseTensor([[0,2],[1,0]],[1.,2.],[2,3]),{p})[1]"
        for p in ("[1]", "1")
    ),
    "tf.sparse.transpose(tf.SparseTensor([[0,2],[1,0]],[1.,2.],D(I([2]))),[0]).values",
    *(f"tf.{f}({s})" for f in ("zeros", "ones") for s in ("[1,1.5]", "[2.]", "1.5")),
    *(f"tf.image.{f}(D(C([1,2])))" for f in ("random_flip_left_right", "flip_up_down")),
    "tf.device('/cpu:0/gpu:1').__enter__()",
    "tf.device('/gpu:1/device:CPU:0').__enter__()",
    *(
        f"tf.shape(tf.nn.{f}(C({x}),[1,2,2,1],{s},'VALID'))"
        for f, x in (("avg_pool", "[1,3,3,2]"),)
        for s in ("[1,1,1,-3]", "[1,1,1,0]", "[1,1,1,2]", "[2,1,1,1]")
    ),
    *(
        f"tf.nn.{f}(C([1,3,3,3,2]),[1,2,2,2,1],[1,1,1,1,{s}],'VALID')"
        for f in ("avg_pool3d", "max_pool3d")
        for s in (-3, 0, 2)
    ),
    "tf.one_hot([1],[1])",
    "tf.one_hot(D([1]),[[1]])",
    "tf.reduce_join([['a']],[[0]])",
    *(f"tf.linalg.expm({m})" for m in ("[[np.nan]]", "[[1.,np.inf],[0.,1.]]", "[[-np.inf]]")),
    "tf.strings.bytes_split(tf.placeholder(tf.uint8,[1]))",
    "tf.unsorted_segment_mean(C([3],tf.complex64),[[1,2,0]],5)",
    *(
        f"tf.is_nan(tf.betainc({a}.,{b}.,{x}))"
        for a, b, x in ((0, 1, 0.5), (1, 0, 0.5), (-1, 1, 0.5), (1, 1, 0.0), (1, 1, 1.5))
    ),
    "tf.raw_ops.Betainc(a=D(C([1,3])),b=C([3]),x=C([3]))",
    *(f"tf.strided_slice([1],[0],[1],{m}_mask=2**31)" for m in ("begin", "ellipsis")),
    "tf.gradients(tf.parallel_stack([X,X]),X)",
    "tf.image.resize_image_with_pad(P([0,None,2]),4,2)",
    "tf.image.resize_image_with_pad(P([1,0,None,2]),4,2)",
    "tf.substr(tf.placeholder(tf.string),[[1,2]],tf.placeholder(tf.int32,[None,None]))",
    "tf.substr(tf.placeholder(tf.string,[3]),tf.placeholder(tf.int32,[None]),[1,2,3])",
    "tf.constant([str(tf.tensordot(P([1,None,1]),C([3]),1).shape)])",
    "tf.constant([str(tf.image.rgb_to_grayscale(P([1,None,1])).shape)])",
    "tf.raw_ops.BiasAddGrad(out_backprop=D([1.,2.]))",
    "tf.raw_ops.NthElement(input=X,n=D([1]))",
    "tf.raw_ops.UniqueV2(x=[1,1],axis=D(0))[0]",
    "tf.raw_ops.BroadcastGradientArgs(s0=D([[1,2]]),s1=[2])[0]",
    "tf.raw_ops.SparseReshape(input_indices=I([1,2]),input_shape=[2,2],new_shape=4)[1]",
    "tf.raw_ops.SparseReshape(input_indices=I([1,2]),input_shape=[2,2],new_shape=D(np.int64(4)))[1]",
    "tf.raw_ops.EditDistance(hypothesis_indices=I([1,3]),hypothesis_values=['a','b'],"
    "hypothesis_shape=[1,1,1],truth_indices=I([1,3]),truth_values=['a'],truth_shape=[1,1,1])",
    "tf.raw_ops.FakeQuantWithMinMaxVarsPerChannel(inputs=C([4,3]),min=C([3]),max=C([6]))",
    "tf.raw_ops.RaggedTensorToSparse(rt_nested_splits=[I([1,4])],rt_dense_values=C([3]))[0]",
    "tf.raw_ops.SparseTensorDenseMatMul(a_indices=I([1,1,2]),a_values=[1.],a_shape=[2,2],b=C([2,2]))",
    "tf.sparse.reduce_sum(tf.SparseTensor([[0,0],[1,2]],[1.,2.],[2,3]),[])",
    "tf.gradients(tf.sparse.reduce_sum(tf.SparseTensor([[0,0],[1,2]],[X[0,0,0,0],2.],[2,3]),[]),X)"
    "[0][0,0,0]",
    "tf.data.Dataset.from_tensors(tf.SparseTensor([[0,0],[1,1]],[1,2],[2,2])).apply("
    "tf.data.experimental.unbatch()).make_one_shot_iterator().get_next().values",
    # files and folders that are not there, strings that are none, devices
    "tf.train.Saver([tf.get_variable('v',[1])]).restore(tf.Session(),'/nosuch/x')",
    "tf.train.Saver([tf.get_variable('v',[1])]).restore(tf.Session(),'/tmp/')",
    "tf.train.checkpoint_exists('/nosuch/x')",
    "tf.train.get_checkpoint_mtimes(['/nosuch/x'])",
    "tf.train.write_graph(tf.get_default_graph(),'/proc/nosuch','x')",
    "tf.py_func(lambda:np.array([b'a',None],object),[],tf.string)",
    "tf.py_func(lambda:np.array([b'a',3.5],object),[],tf.string)",
    # numbers that are not finite, to the last bit
    "tf.image.adjust_hue([[[np.nan,.25,np.inf],[.75,-np.inf,np.nan],[np.inf,1.,2.],[1.,2.,np.inf]]],.25)",
    "tf.image.adjust_hue([[[1.,np.nan,2.],[.5,.5,.5],[.1,.7,.3],[.9,.2,.4],[.2,.1,.8]]],-.3)",
]


def outcome(tf: Any, call: str) -> list[str]:
    """["build" or "run", the class, the first line of the text], or ["ok", "", the values]."""
    import numpy as np

    tf.reset_default_graph()

    def placeholder(shape: Any = None) -> Any:
        return tf.placeholder(tf.float32, shape)

    names = {"tf": tf, "np": np, "P": placeholder, "C": tf.ones}

    def late(value: Any) -> Any:
        """A tensor of unknown shape."""
        return tf.placeholder_with_default(value, None)

    names.update(D=late, I=lambda shape: np.zeros(shape, np.int64))
    names.update(X=tf.ones([2, 8, 8, 4]), W=tf.ones([3, 3, 4, 4]))
    try:
        made = eval(call, names)
    except Exception as error:
        return ["build", type(error).__name__, first_line(error)]
    try:
        with tf.Session() as session:
            value = session.run(made)
    except Exception as error:
        return ["run", type(error).__name__, first_line(error)]
    values = value if isinstance(value, list) else [value]
    return ["ok", "", str([v.tolist() for v in values])]


def first_line(error: Exception) -> str:
    """The text, as far as the message itself goes."""
    return str(error).splitlines()[0].partition(" for '")[0].partition(", shape ")[0]


if __name__ == "__main__":
    import tensorflow

    found = [[call, outcome(tensorflow, call)] for call in CALLS]
    print(json.dumps(found, indent=1))
