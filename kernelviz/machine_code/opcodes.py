"""The class of each opcode of sm_70 to sm_120.

Source of the opcodes: NVIDIA, "CUDA Binary Utilities", chapter "Instruction Set Reference" (tables for Volta, Turing, Ampere and
Ada, Hopper, Blackwell). An opcode that is in no table is unknown.
"""

from kernelviz.core.machine_code import Instruction, InstructionClass

_CLASSES: dict[InstructionClass, str] = {
    "tensor": "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA BGMMA UTCHMMA UTCIMMA UTCQMMA UTCOMMA UTCMXQMMA",
    "fp32": (
        "FADD FADD2 FADD32I FCHK FFMA FFMA2 FFMA32I FHADD FHFMA FMNMX FMNMX3 FMUL FMUL2 FMUL32I FSEL FSET FSWZADD "
        "UFADD UFFMA UFHADD UFHFMA UFMNMX UFMUL UFSEL UFSET"
    ),
    "fp16": "HADD2 HADD2_32I HFMA2 HFMA2_32I HMNMX2 HMUL2 HMUL2_32I HSET2",
    "fp64": "DADD DFMA DMUL",
    "special_function": "MUFU",
    "conversion": ("F2F F2FP F2I F2IP FRND I2F I2FP I2I I2IP UF2F UF2FP UF2I UF2IP UFRND UI2F UI2FP UI2I UI2IP"),
    "predicate": (
        "CSET CSETP DSETP FSETP HSETP2 ISETP P2R PLOP3 PSET PSETP R2P UFSETP UISETP UP2UR UPLOP3 UPSETP UR2UP"
    ),
    "integer": (
        "BMSK BREV FLO IABS IADD IADD3 IADD32I IDP IDP4A IMAD IMNMX IMUL IMUL32I ISCADD ISCADD32I LEA LOP LOP3 LOP32I POPC "
        "SGXT SHF SHL SHR VABSDIFF VABSDIFF4 VHMNMX VIADD VIADDMNMX VIMNMX VIMNMX3"
    ),
    "uniform": (
        "UBMSK UBREV UCLEA UFLO UIABS UIADD3 UIMAD UIMNMX ULEA ULEPC ULOP ULOP3 ULOP32I UMOV UMOV32I UPOPC UPRMT USEL "
        "USGXT USHF USHL USHR UVIADD UVIMNMX UVIRTCOUNT"
    ),
    "move": "B2R BMOV CS2R CS2UR GETLMEMBASE LEPC MOV MOV32I MOV64IUR MOVM PRMT R2B R2UR S2R S2UR SEL SETLMEMBASE",
    "warp": "CREDUX ELECT MATCH QSPC REDUX SHFL VOTE VOTEU",
    "global_memory": "ATOM ATOMG CCTL CCTLL CCTLT LD LDG LDGMC RED REDAS REDG ST STG UREDGR USTGR",
    "shared_memory": "ATOMS LDS LDSM REDS STAS STS STSM UMEMSETS",
    "local_memory": "LDL STL",
    "constant_memory": "LDC LDCU ULDC",
    "tensor_memory": "LDT LDTM STT STTM UTCATOMSWS UTCCP UTCSHIFT UTCSTSWS",
    "texture": "FOOTPRINT SUATOM SULD SUQUERY SURED SUST TEX TLD TLD4 TMML TXD TXQ",
    "asynchronous_copy": "LDGSTS UBLKCP UBLKPF UBLKRED UTMALDG UTMAPF UTMAREDG UTMASTG",
    "barrier": (
        "ACQBULK ACQSHMINIT ARRIVES BAR CGAERRBAR DEPBAR ENDCOLLECTIVE ERRBAR FENCE LDGDEPBAR MEMBAR SYNCS UCGABAR_ARV "
        "UCGABAR_WAIT UTCBAR UTMACCTL UTMACMDFLUSH WARPGROUP WARPGROUPSET WARPSYNC"
    ),
    "control_flow": (
        "BPT BRA BREAK BRX BRXU BSSY BSYNC CALL EXIT JMP JMX JMXU KILL NANOSLEEP PREEXIT RET RPCMOV RTT YIELD"
    ),
    "miscellaneous": "PMTRIG SETCTAID SPMETADATA UGETNEXTWORKID USETMAXREG",
    "no_operation": "NOP",
}
_CLASS_OF = {mnemonic: kind for kind, mnemonics in _CLASSES.items() for mnemonic in mnemonics.split()}


def class_of(instruction: Instruction) -> InstructionClass:
    """The class of an instruction. One whose predicate is constantly false does nothing, whatever it is.

    A multiplication that only copies a register or loads a constant is a move: ptxas uses it to spread moves over the units.

    >>> class_of(Instruction(address=0, opcode="IMAD.MOV.U32", operands=("R4", "RZ", "RZ", "R6"), encoding=""))
    'move'
    """
    if instruction.is_never_executed:
        return "no_operation"
    if instruction.mnemonic == "IMAD" and "MOV" in instruction.modifiers:
        return "move"
    if instruction.mnemonic == "HFMA2" and instruction.operands[1:3] == ("-RZ", "RZ"):
        return "move"
    return _CLASS_OF.get(instruction.mnemonic, "unknown")
