// The sums of a thread as operands of wgmma, which names each register of a shape's fragment by itself: SUMS_32 numbers the first 32 operands of
// an instruction, FLOATS_32(d, 0) are d[0] to d[31] as operands that it reads and writes. For 4 and each multiple of 8 up to 128.
#pragma once

#define SUMS_4 "%0, %1, %2, %3"
#define SUMS_8 SUMS_4 ", %4, %5, %6, %7"
#define SUMS_16 SUMS_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define SUMS_24 SUMS_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define SUMS_32 SUMS_24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define SUMS_40 SUMS_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define SUMS_48 SUMS_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define SUMS_56 SUMS_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define SUMS_64 SUMS_56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define SUMS_72 SUMS_64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define SUMS_80 SUMS_72 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define SUMS_88 SUMS_80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define SUMS_96 SUMS_88 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define SUMS_104 SUMS_96 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define SUMS_112 SUMS_104 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define SUMS_120 SUMS_112 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define SUMS_128 SUMS_120 ", %120, %121, %122, %123, %124, %125, %126, %127"

#define FLOATS_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define FLOATS_8(d, i) FLOATS_4(d, i), FLOATS_4(d, i + 4)
#define FLOATS_16(d, i) FLOATS_8(d, i), FLOATS_8(d, i + 8)
#define FLOATS_24(d, i) FLOATS_16(d, i), FLOATS_8(d, i + 16)
#define FLOATS_32(d, i) FLOATS_24(d, i), FLOATS_8(d, i + 24)
#define FLOATS_40(d, i) FLOATS_32(d, i), FLOATS_8(d, i + 32)
#define FLOATS_48(d, i) FLOATS_40(d, i), FLOATS_8(d, i + 40)
#define FLOATS_56(d, i) FLOATS_48(d, i), FLOATS_8(d, i + 48)
#define FLOATS_64(d, i) FLOATS_56(d, i), FLOATS_8(d, i + 56)
#define FLOATS_72(d, i) FLOATS_64(d, i), FLOATS_8(d, i + 64)
#define FLOATS_80(d, i) FLOATS_72(d, i), FLOATS_8(d, i + 72)
#define FLOATS_88(d, i) FLOATS_80(d, i), FLOATS_8(d, i + 80)
#define FLOATS_96(d, i) FLOATS_88(d, i), FLOATS_8(d, i + 88)
#define FLOATS_104(d, i) FLOATS_96(d, i), FLOATS_8(d, i + 96)
#define FLOATS_112(d, i) FLOATS_104(d, i), FLOATS_8(d, i + 104)
#define FLOATS_120(d, i) FLOATS_112(d, i), FLOATS_8(d, i + 112)
#define FLOATS_128(d, i) FLOATS_120(d, i), FLOATS_8(d, i + 120)
